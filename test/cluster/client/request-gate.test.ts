import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRequestGate } from '../../../src/cluster/client/http-client.ts';

describe('createRequestGate()', () => {
  test('never exceeds its limit, and admits all waiting requests in order', async () => {
    const step = fc.constantFrom('enter', 'enter', 'leave', 'abort');
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 40 }), async (limit, steps) => {
        const gate = createRequestGate(limit);
        const entered: number[] = [];
        const waiting: { readonly stop: AbortController; readonly entry: Promise<void> }[] = [];
        const settled = new Set<number>();
        const leaves: (() => void)[] = [];
        let inside = 0;
        const enter = (): void => {
          const stop = new AbortController();
          const id = waiting.length;
          const work = async (): Promise<void> => {
            settled.add(id);
            inside += 1;
            entered.push(id);
            await new Promise<void>((resolve) => leaves.push(resolve));
          };
          const entry = gate(stop.signal, work).then(() => void settled.add(id));
          waiting.push({ stop, entry });
        };
        const leave = async (): Promise<void> => {
          inside -= 1;
          leaves.shift()?.();
          await new Promise(setImmediate);
        };
        for (const what of steps) {
          if (what === 'enter') enter();
          else if (what === 'abort') waiting.find((_, id) => !settled.has(id))?.stop.abort();
          await new Promise(setImmediate);
          if (what === 'leave' && inside > 0) await leave();
          expect(inside).toBeLessThanOrEqual(limit);
        }
        while (inside > 0) await leave();
        await Promise.all(waiting.map(async ({ entry }) => await entry));
        expect(entered).toEqual(entered.toSorted((left, right) => left - right));
      }),
      { numRuns: 60 },
    );
  });
});
