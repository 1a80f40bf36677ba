/** Captures in a directory of their own, with the files that the service uses. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createCaptures, type Captures } from '../../src/files/captures.ts';
import { SYSTEM_DISK } from '../../src/files/regular-file.ts';
import type { CaptureRule } from '../../src/gateway/capture/capture-taps.ts';
import { createClock } from '../../src/platform/clock.ts';

export async function openCaptures({ clock = createClock(), disk = SYSTEM_DISK, sweepMs = 60_000 } = {}) {
  const parent = await mkdtemp(path.join(tmpdir(), 'svc-captures-'));
  const directory = path.join(parent, 'captures');
  const said: string[] = [];
  const note = (_fields: object, message: string): void => void said.push(message);
  const log = { info: note, warn: note };
  let rules: readonly CaptureRule[] = [];
  const apply = (running: readonly CaptureRule[]): void => void (rules = running);
  const opened: Captures[] = [];
  const open = (): Captures => {
    const captures = createCaptures({ directory, clock, disk, log, apply, sweepMs });
    opened.push(captures);
    return captures;
  };
  async function remove(): Promise<void> {
    await Promise.all(opened.map((captures) => captures.close()));
    await rm(parent, { recursive: true, force: true });
  }
  return { directory, said, rules: () => rules, open, remove };
}
