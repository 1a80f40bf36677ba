import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { inOneGo, type Parts } from '../../src/platform/decide/parse-json.ts';
import { createBreather, inSlices } from '../../src/platform/slices.ts';

const PARTS = 10;

/** Ten parts of a millisecond each on a clock of their own. */
function tenParts() {
  let now = 0;
  const done: number[] = [];
  function* parts(): Parts<string> {
    for (let part = 0; part < PARTS; part += 1) {
      now += 1;
      done.push(part);
      yield;
    }
    return 'all';
  }
  return { parts: parts(), done, now: () => now };
}

describe('work in parts', () => {
  test('pauses whenever a slice has lasted long enough, and returns its result', async () => {
    const { parts, done, now } = tenParts();
    const doneAtPauses: number[] = [];
    const turn = async (): Promise<void> => void doneAtPauses.push(done.length);
    expect(await inSlices(parts, createBreather({ sliceMs: 3, now, turn }))).toBe('all');
    expect(doneAtPauses).toEqual([3, 6, 9]);
  });

  test('lets other callbacks run in its pauses', async () => {
    const { parts, done, now } = tenParts();
    const seen: number[] = [];
    const others = (async () => {
      while (done.length < PARTS) {
        seen.push(done.length);
        await nextTurn();
      }
    })();
    await inSlices(parts, createBreather({ sliceMs: 1, now }));
    await others;
    expect(seen.filter((count) => count > 0 && count < PARTS).length).toBeGreaterThan(3);
  });

  test('does not pause where it is done in one go', () => {
    const { parts, done } = tenParts();
    expect(inOneGo(parts)).toBe('all');
    expect(done).toHaveLength(PARTS);
  });
});
