/** When a watch is given up, on a clock that the test advances. */
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { readWatch, type WatchOutcome } from '../../../src/cluster/client/read-watch.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { createWorldClock } from '../../support/simulation/world-clock.ts';

const SILENT_MS = 1000;
const never = new AbortController().signal;

/** Reads a watch that sends one line of this kind, and then nothing. */
async function watch(kind: 'bookmark' | 'advance') {
  const clock = createWorldClock();
  const from = clock.now();
  let outcome: WatchOutcome | undefined;
  async function* lines(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{}\n');
    await once(signal, 'abort');
  }
  const limits = { clock, due: { bookmarked: from + 60_000, otherwise: from + 60_000 }, endBy: from + 10_000, silentMs: SILENT_MS };
  const sink = {
    fold: () => ({ step: { kind, resourceVersion: undefined }, changed: false }),
    opened: () => undefined,
    changed: () => undefined,
  };
  const open = async (signal: AbortSignal) => await Promise.resolve(ok(lines(signal)));
  void readWatch(open, limits, sink, { signal: never, relist: never }).then((ended) => (outcome = ended));
  return { clock, outcome: () => outcome };
}

test('a watch that announces its progress is given up when the time without any is over, and not before', async () => {
  const { clock, outcome } = await watch('bookmark');
  await clock.advance(SILENT_MS - 1);
  expect(outcome()).toBeUndefined();
  await clock.advance(1);
  expect(outcome()).toEqual({ kind: 'ended', orderly: false, livedMs: SILENT_MS, bookmarked: true });
});

test('a watch without bookmarks may be silent until the server should have ended it', async () => {
  const { clock, outcome } = await watch('advance');
  await clock.advance(39_999);
  expect(outcome()).toBeUndefined();
  await clock.advance(1);
  expect(outcome()).toEqual({ kind: 'ended', orderly: false, livedMs: 40_000, bookmarked: false });
});
