/** A stop where other processes forward requests too: one of them may have let a request in after the plan counted them. */
import { expect, test } from '@jest/globals';
import { createDeadline } from '../../src/reconciler/observe.ts';
import { createExecutor, type Outcome } from '../../src/reconciler/execute.ts';
import type { ActionArgs } from '../../src/reconciler/decide/facts/actions.ts';
import { createTracker } from '../../src/reconciler/tracker.ts';
import { SlotName, WorkloadId } from '../../src/schema/words/names.ts';
import { createInMemoryRuntime } from '../support/in-memory/in-memory-runtime.ts';
import { createWorldClock } from '../support/simulation/world-clock.ts';
import { FAKE_PROVIDER } from '../support/simulation/world-models.ts';

const slot = SlotName.parse('primary');
const workload = WorkloadId.parse('w');

function begin(args: Partial<ActionArgs['stop']>) {
  const clock = createWorldClock();
  const runtime = createInMemoryRuntime({ clock });
  const done: string[] = [];
  let settle: (isAsPlanned: boolean) => void = () => undefined;
  let outcome: Outcome | undefined;
  const executor = createExecutor({
    runtime: {
      ...runtime,
      stop: async () => {
        done.push('stop');
        return { ok: true, value: undefined };
      },
    },
    models: {
      root: '/models',
      observe: async () => new Map(),
      pull: async () => ({ ok: true, value: undefined }),
      changes: () => undefined,
    },
    traffic: {
      read: () => ({ workloads: new Map(), demand: new Map() }),
      changes: () => undefined,
      abort: () => void done.push('abort'),
      settle: async () => {
        done.push('settle');
        return await new Promise<boolean>((resolve) => (settle = resolve));
      },
    },
    providers: { gguf: FAKE_PROVIDER },
    probeIo: { request: async () => ({ status: 200, body: '{}' }) },
    clock,
    within: createDeadline(clock),
    tracker: createTracker(),
    waitingFor: () => [],
    onProgress: () => undefined,
  });
  const all = { slot, workload, graceMs: 0, abort: false, failure: undefined, ...args };
  executor.begin(
    { name: 'stop', slot, because: { reason: 'SlotRemoved', message: 'It is gone' }, args: all },
    (_, ended) => (outcome = ended),
  );
  return { clock, done, settle: (isAsPlanned: boolean) => settle(isAsPlanned), outcome: () => outcome };
}

const failure = { kind: 'crash', reason: 'Crashed', message: 'It has ended' } as const;

test.each<[string, Partial<ActionArgs['stop']>, boolean, readonly string[], Outcome['kind']]>([
  ['no request has come: it is stopped', {}, true, ['settle', 'stop'], 'done'],
  ['a request has come: the next pass lets it finish', {}, false, ['settle'], 'none'],
  ['its drain time is over: it is stopped in any case', { abort: true }, false, ['abort', 'settle', 'stop'], 'done'],
  ['it has crashed: it is stopped in any case', { failure }, false, ['settle', 'stop'], 'done'],
])('a workload is stopped only after all processes have settled; %s', async (_, args, isAsPlanned, expected, kind) => {
  const { clock, done, settle, outcome } = begin(args);
  await clock.advance(5000);
  expect(done).not.toContain('stop');
  settle(isAsPlanned);
  await clock.advance(1);
  expect([done, outcome()?.kind]).toEqual([expected, kind]);
});
