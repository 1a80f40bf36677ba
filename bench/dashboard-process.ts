/**
 * The API with slots in memory and the built dashboard, in its own process, so that its CPU time is its own. Argument: the number of slots. Prints its address. A message
 * with a number sets how many events there are a second, over all slots; at first there are none.
 */
import { SlotName } from '../src/schema/words/names.ts';
import { startWorld } from '../test/api/manage/world.ts';

const TICK_MS = 20;
/** Of so many events one is a change of state. */
const STATE_EVERY = 5;

const world = await startWorld({ dashboard: 'dashboard/dist' });
const names = Array.from({ length: Number(process.argv[2]) }, (_, index) => SlotName.parse(`slot-${String(index).padStart(3, '0')}`));
for (const name of names) world.save(name, 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
await world.idle();

let perTick = 0;
let sent = 0;

function sendOne(): void {
  const slot = names[sent % names.length];
  const round = Math.floor(sent / names.length);
  sent += 1;
  if (slot === undefined) return;
  const entry = { at: Date.now(), slot, cause: 'The measurement' };
  if ((round + sent) % STATE_EVERY !== 0) world.feed.add({ ...entry, kind: 'action', message: `Event ${sent}` });
  else {
    const [from, to] = round % 2 === 0 ? (['ready', 'serving'] as const) : (['serving', 'ready'] as const);
    world.feed.add({ ...entry, kind: 'state', message: `From "${from}" to "${to}"`, from, to });
  }
}

let owed = 0;
setInterval(() => {
  owed += perTick;
  for (; owed >= 1; owed -= 1) sendOne();
}, TICK_MS);
process.on('message', (perSecond) => void (perTick = (Number(perSecond) * TICK_MS) / 1000));
process.on('disconnect', () => process.exit(0));
process.stdout.write(`${world.url}\n`);
