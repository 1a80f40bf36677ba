import { describe, expect, test } from '@jest/globals';
import { createExecutor } from '../../src/reconciler/execute.ts';
import { ASKED_AT_ONCE, COUNTS_FOR_MS, createProbeQueue } from '../../src/reconciler/ask-servers.ts';
import type { ActionArgs } from '../../src/reconciler/decide/facts/actions.ts';
import { createDeadline } from '../../src/reconciler/observe.ts';
import { createTracker } from '../../src/reconciler/tracker.ts';
import { ModelId, SlotName, WorkloadId } from '../../src/schema/words/names.ts';
import { createInMemoryRuntime } from '../support/in-memory/in-memory-runtime.ts';
import { specOf } from '../support/providers/odd-models.ts';
import { createWorldClock } from '../support/simulation/world-clock.ts';
import { FAKE_PROVIDER } from '../support/simulation/world-models.ts';

const MANY = 200;
const numbers = Array.from({ length: MANY }, (_, index) => index);

/** Work that ends when it is told to. */
function createWork() {
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (which: number) => async (): Promise<number> => {
    begun.push(which);
    await new Promise<void>((resolve) => void ends.push(resolve));
    return which;
  };
  return { begun, ends, work };
}

describe('createProbeQueue()', () => {
  test('asks a limited number of servers at once, and the others in order as soon as one has answered', async () => {
    const clock = createWorldClock();
    const queue = createProbeQueue(clock);
    const { begun, ends, work } = createWork();
    const { signal } = new AbortController();
    const done = Promise.all(numbers.map(async (which) => await queue(signal, work(which))));
    await clock.advance(1);
    expect(begun).toEqual(numbers.slice(0, ASKED_AT_ONCE));
    for (let answered = 0; answered < MANY; answered += 1) {
      ends[answered]?.();
      await clock.advance(1);
      expect(begun).toHaveLength(Math.min(MANY, ASKED_AT_ONCE + answered + 1));
    }
    expect(await done).toEqual(numbers);
  });

  test('does not keep others waiting for servers that take long', async () => {
    const clock = createWorldClock();
    const queue = createProbeQueue(clock);
    const { begun, ends, work } = createWork();
    const { signal } = new AbortController();
    const done = Promise.all(numbers.map(async (which) => await queue(signal, work(which))));
    await clock.advance(COUNTS_FOR_MS * Math.floor(MANY / ASKED_AT_ONCE));
    expect(begun).toEqual(numbers);
    // A late answer does not free a second place.
    for (const end of ends) end();
    await done;
    const more = createWork();
    const again = Promise.all(numbers.map(async (which) => await queue(signal, more.work(which))));
    await clock.advance(1);
    expect(more.begun).toHaveLength(ASKED_AT_ONCE);
    for (let turn = 0; turn < MANY; turn += 1) {
      for (const end of more.ends) end();
      await clock.advance(1);
    }
    expect([more.ends.length, more.begun.length]).toEqual([MANY, MANY]);
    for (const end of more.ends) end();
    await again;
  });

  test('gives up what waits when the signal aborts, and gives its place to nobody', async () => {
    const clock = createWorldClock();
    const queue = createProbeQueue(clock);
    const { begun, ends, work } = createWork();
    const [stays, leaves] = [new AbortController(), new AbortController()];
    const first = Promise.all(numbers.slice(0, ASKED_AT_ONCE).map(async (which) => await queue(stays.signal, work(which))));
    const second = queue(leaves.signal, work(-1));
    const third = queue(stays.signal, work(-2));
    leaves.abort();
    expect(await second).toBeUndefined();
    expect(await queue(leaves.signal, work(-3))).toBeUndefined();
    for (const end of ends) end();
    await first;
    await clock.advance(1);
    ends.at(-1)?.();
    expect(await third).toBe(-2);
    expect(begun).not.toContain(-1);
  });
});

test('the executor asks the servers of many slots in turn when all their probes are due at once', async () => {
  const clock = createWorldClock();
  let [asked, most] = [0, 0];
  const executor = createExecutor({
    runtime: createInMemoryRuntime({ clock }),
    models: {
      root: '/models',
      observe: async () => new Map(),
      pull: async () => ({ ok: true, value: undefined }),
      changes: () => undefined,
    },
    traffic: { read: () => ({ workloads: new Map(), demand: new Map() }), changes: () => undefined, abort: () => undefined },
    providers: { gguf: FAKE_PROVIDER },
    probeIo: {
      async request() {
        asked += 1;
        most = Math.max(most, asked);
        await new Promise<void>((resolve) => void clock.at(clock.now() + 5, resolve));
        asked -= 1;
        return { status: 200, body: '{}' };
      },
    },
    clock,
    within: createDeadline(clock),
    tracker: createTracker(),
    waitingFor: () => [],
    onProgress: () => undefined,
  });
  let ended = 0;
  for (const which of numbers) {
    const slot = SlotName.parse(`s${which}`);
    const endpoint = { host: '127.0.0.1', port: 20_000 + which };
    const args: ActionArgs['probe'] = {
      slot,
      workload: WorkloadId.parse(`w${which}`),
      endpoints: [endpoint],
      spec: specOf('gguf'),
      model: { id: ModelId.parse('a.gguf'), hostPath: '/models/a.gguf', sizeBytes: 1 },
      patienceMs: 0,
      since: 0,
      passedEndpoints: [endpoint],
      passed: true,
      asksModel: true,
    };
    executor.begin({ name: 'probe', slot, because: { reason: 'ProbeDue', message: 'It is time' }, args }, () => (ended += 1));
  }
  await clock.advance(10_000);
  expect([ended, most]).toEqual([MANY, ASKED_AT_ONCE]);
});
