/**
 * Loaded into a service with `--import`: shifts its wall clock, and nothing else, by the milliseconds in the file `TEST_WALL_CLOCK_FILE`, as if an administrator
 * had set the clock of the machine. Timers and `performance.now()` run on, as they do on a real machine.
 */
import { readFileSync } from 'node:fs';

const file = process.env.TEST_WALL_CLOCK_FILE ?? '';
const RealDate = Date;
let aheadMs = 0;

const read = () => {
  try {
    aheadMs = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    aheadMs = 0;
  }
};
read();
setInterval(read, 20).unref();

globalThis.Date = class extends RealDate {
  constructor(...values) {
    if (values.length === 0) super(RealDate.now() + aheadMs);
    else super(...values);
  }

  static now() {
    return RealDate.now() + aheadMs;
  }
};
