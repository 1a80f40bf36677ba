import { describe, expect, test } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import type { Leadership } from '../../../src/cluster/client/ports.ts';
import { createReadyLeadership } from '../../../src/cluster/leadership/ready-leadership.ts';
import type { Wake } from '../../../src/reconciler/ports.ts';

/** A Lease that the test gives and takes, and preparations that it ends. */
function createWorld() {
  let term = AbortSignal.abort();
  let current: AbortController | undefined;
  const wakes = new Set<Wake>();
  const running = new AbortController();
  const prepared: { readonly term: AbortSignal; readonly finish: () => void }[] = [];
  const wakeAll = (): void => {
    for (const wake of wakes) wake();
  };
  const lease: Leadership = {
    leads: () => !term.aborted,
    term: () => term,
    holder: () => 'somebody',
    changes: (wake) => void wakes.add(wake),
    start: async (signal) => await new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
  };
  const leadership = createReadyLeadership(
    lease,
    async (signal) => await new Promise<void>((resolve) => void prepared.push({ term: signal, finish: resolve })),
  );
  void leadership.start(running.signal);
  return {
    leadership,
    prepared,
    begin() {
      current = new AbortController();
      term = current.signal;
      wakeAll();
    },
    end() {
      current?.abort();
      wakeAll();
    },
  };
}

describe('createReadyLeadership()', () => {
  test('leads only when it is prepared, and wakes then', async () => {
    const { leadership, prepared, begin, end } = createWorld();
    const seen: boolean[] = [];
    leadership.changes(() => void seen.push(leadership.leads()), new AbortController().signal);
    expect([leadership.leads(), leadership.term().aborted, leadership.holder()]).toEqual([false, true, 'somebody']);
    begin();
    expect([leadership.leads(), leadership.term().aborted]).toEqual([false, true]);
    prepared[0]?.finish();
    await turn();
    expect([leadership.leads(), leadership.term()]).toEqual([true, prepared[0]?.term]);
    end();
    expect([leadership.leads(), leadership.term().aborted]).toEqual([false, true]);
    expect(seen).toEqual([false, true, false]);
  });

  test('prepares again for each term, and a preparation for an earlier one does not count', async () => {
    const { leadership, prepared, begin, end } = createWorld();
    begin();
    end();
    begin();
    prepared[0]?.finish();
    await turn();
    expect([prepared.length, leadership.leads()]).toEqual([2, false]);
    prepared[1]?.finish();
    await turn();
    expect(leadership.leads()).toBe(true);
  });
});
