/** The tree of a slot: what hangs below what, and where a finding is told. */
import { describe, expect, test } from '@jest/globals';
import { scoresOf } from '../../dashboard/src/decide/slot-facts.ts';
import { treeOf, type TreeInput, type TreeRow } from '../../dashboard/src/decide/slot-tree.ts';
import type { Condition, Explanation, Pod, Slot } from '../../dashboard/src/types.ts';
import { SlotName } from '../../src/schema/words/names.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const SERVED = { revision: 4, at: null, who: 'anna', outcome: 'served' } as const;

const condition = (type: Condition['type'], status: Condition['status'], reason: string): Condition => ({
  type,
  status,
  reason,
  message: `It is ${reason}`,
  last_transition_at: null,
  observed_generation: 4,
});
function slot(conditions: readonly Condition[], more: Partial<Slot['status']> = {}): Slot {
  const status = {
    state: 'serving',
    observed_generation: 4,
    provider: 'gguf',
    backend: 'vulkan',
    model: 'fox',
    wanted_model: 'fox',
  } as const;
  const rest = { capabilities: [], endpoint: null, memory_bytes: null, restarts: 2, replicas: null, since: null, progress: null };
  return {
    name: SlotName.parse('primary'),
    spec: {},
    generation: 4,
    resource_version: 'a',
    status: { ...status, ...rest, rollout: null, problems: [], conditions: [...conditions], ...more },
  };
}
const workload = (more: Partial<Explanation['workloads'][number]> = {}): Explanation['workloads'][number] => ({
  name: 'svc-slot-primary',
  phase: 'running',
  serving: true,
  generation: 4,
  started_at: null,
  pid: 4711,
  container: null,
  in_flight: 3,
  memory_bytes: null,
  device_memory_bytes: null,
  message: null,
  ...more,
});
const pod = (name: string, more: Partial<Pod> = {}): Pod => ({
  name,
  slot: SlotName.parse('primary'),
  phase: 'Running',
  ready: true,
  terminating: false,
  restarts: 0,
  node: 'worker-1',
  created_at: null,
  reason: null,
  message: '',
  ...more,
});
const placed = (placement: { memory: string; bytes: number }[], admitted = true): Explanation['memory'] => ({
  admitted,
  may_wait: false,
  placement,
  on_host: null,
  short: null,
  candidates: [],
});
const inputOf = (more: Partial<TreeInput> = {}): TreeInput => ({
  slot: slot([]),
  explanation: { workloads: [workload()], memory: null },
  revisions: [SERVED],
  pods: [],
  parked: 0,
  isCluster: false,
  now: NOW,
  ...more,
});

/** Each row as a line, indented below its parent. */
const linesOf = ({ kind, name, state, findings, rows }: TreeRow): readonly string[] => [
  [kind, name, state, ...findings.map(({ reason, message }) => `! ${reason === '' ? message : reason}`)]
    .filter((word) => word !== '')
    .join(' '),
  ...rows.flatMap(linesOf).map((line) => `  ${line}`),
];
const treeLines = (more: Partial<TreeInput> = {}): readonly string[] => linesOf(treeOf(inputOf(more)));
const found = (row: TreeRow, kind: TreeRow['kind']): readonly TreeRow[] => [
  ...(row.kind === kind ? [row] : []),
  ...row.rows.flatMap((each) => found(each, kind)),
];

describe('the tree of a slot', () => {
  test('leads from the declaration to the devices', () => {
    const memory = placed([
      { memory: 'host', bytes: 2 ** 20 },
      { memory: 'gpu0', bytes: 2 ** 30 },
      { memory: 'gpu1', bytes: 2 ** 30 },
    ]);
    const workloads = [workload({ memory_bytes: 2 ** 19, device_memory_bytes: 2 ** 29 })];
    const tree = treeOf(inputOf({ explanation: { workloads, memory }, parked: 5 }));
    expect(linesOf(tree)).toEqual([
      'declaration slots/primary.toml valid',
      '  revision 4 in force',
      '    workload svc-slot-primary serving',
      '      process 4711',
      '        device host admitted',
      '        device gpu0, gpu1 admitted',
    ]);
    expect(found(tree, 'device').map(({ facts }) => facts)).toEqual([
      { backend: 'vulkan', reserved: '1.0 MiB', measured: '512 KiB' },
      { backend: 'vulkan', reserved: '2.0 GiB', measured: '512 MiB' },
    ]);
    expect(found(tree, 'workload')[0]?.facts).toEqual({ at: '', inFlight: 3, parked: 5, restarts: 2 });
    expect(found(tree, 'revision')[0]?.facts).toEqual({ at: '', by: 'anna' });
  });

  test('has both workloads of a swap, each below its revision, and what waits at the new one', () => {
    const revisions = [{ ...SERVED, revision: 5, outcome: 'pending' }, SERVED] as const;
    const next = workload({ name: 'svc-slot-primary--b', serving: false, generation: 5, pid: null, container: 'abc', in_flight: 0 });
    const tree = treeOf(
      inputOf({
        slot: slot([condition('Ready', 'True', 'ProbePassed'), condition('UpToDate', 'False', 'Warming')]),
        revisions,
        parked: 1,
        explanation: { workloads: [workload(), next], memory: placed([{ memory: 'host', bytes: 5 }]) },
      }),
    );
    expect(linesOf(tree)).toEqual([
      'declaration slots/primary.toml valid',
      '  revision 4 in force',
      '    workload svc-slot-primary serving',
      '      process 4711',
      '  revision 5 pending',
      '    workload svc-slot-primary--b running ! Warming',
      '      container abc',
      '        device host admitted',
    ]);
    expect(found(tree, 'workload').map(({ facts }) => facts.parked)).toEqual([undefined, 1]);
  });

  test.each<[string, Condition, string]>([
    ['of the text', condition('SpecValid', 'False', 'SpecInvalid'), 'declaration slots/primary.toml invalid ! SpecInvalid'],
    ['of the edit', condition('UpToDate', 'False', 'Paused'), '  revision 4 in force ! Paused'],
    ['of the server', condition('Stalled', 'True', 'CrashLoop'), '    workload svc-slot-primary serving ! CrashLoop'],
    ['of the memory', condition('Stalled', 'True', 'InsufficientMemory'), '        device vulkan ! InsufficientMemory'],
  ])('tells a problem %s where it is', (_name, problem, line) => {
    const lines = treeLines({ slot: slot([condition('Ready', 'True', 'ProbePassed'), problem]) });
    expect(lines).toContain(line);
    expect(lines.filter((each) => each.includes('!'))).toHaveLength(1);
  });

  test('tells what conditions and the workload say alike once', () => {
    const crashed = slot([condition('Ready', 'False', 'Crashed'), condition('UpToDate', 'False', 'Crashed')]);
    for (const [message, count] of [
      ['It is Crashed', 1],
      ['Exited with code 3', 2],
    ] as const) {
      const tree = treeOf(inputOf({ slot: crashed, explanation: { workloads: [workload({ message })], memory: null } }));
      expect(found(tree, 'workload')[0]?.findings).toHaveLength(count);
    }
  });

  test('tells why a new revision has no workload there, and a problem of the old one at its workload', () => {
    const revisions = [{ ...SERVED, revision: 5, outcome: 'pending' }, SERVED] as const;
    const problems = [condition('Ready', 'Unknown', 'ProbeUnanswered'), condition('DriftDetected', 'True', 'WorkloadAltered')];
    expect(treeLines({ slot: slot([...problems, condition('Stalled', 'True', 'ModelMissing')]), revisions })).toEqual([
      'declaration slots/primary.toml valid',
      '  revision 4 in force',
      '    workload svc-slot-primary serving ! ProbeUnanswered ! WorkloadAltered',
      '      process 4711',
      '  revision 5 pending ! ModelMissing',
    ]);
  });

  test('names a revision that is rolled back, beside the one in force', () => {
    const revisions = [{ ...SERVED, revision: 5, outcome: 'rolled_back' }, SERVED] as const;
    expect(treeLines({ slot: slot([condition('Stalled', 'True', 'RolledBack')]), revisions })).toEqual([
      'declaration slots/primary.toml valid',
      '  revision 4 in force',
      '    workload svc-slot-primary serving',
      '      process 4711',
      '  revision 5 rolled back ! RolledBack',
    ]);
  });

  test.each([
    ['at rest', [SERVED], '  revision 4 in force'],
    ['without a kept history', [], '  revision 4 in force'],
    ['before its first start', [{ ...SERVED, outcome: 'pending' }], '  revision 4 pending'],
  ] as const)('has a workload without a name for a slot %s', (_name, revisions, line) => {
    const off = slot([condition('Ready', 'False', 'NotAskedFor')], { state: 'offline' });
    expect(treeLines({ slot: off, revisions, explanation: { workloads: [], memory: null } })).toEqual([
      'declaration slots/primary.toml valid',
      line,
      '    workload resting ! NotAskedFor',
    ]);
  });

  test('has the pods of each workload in a cluster, and all of them where no workload is known', () => {
    const workloads = [workload({ pid: null }), workload({ pid: null, name: 'svc-slot-primary--b', serving: false })];
    const pods = [
      pod('svc-slot-primary--b-7-x', { ready: false, reason: 'Unschedulable', message: 'No room' }),
      pod('svc-slot-primary-6-y'),
    ];
    expect(treeLines({ explanation: { workloads, memory: null }, pods, isCluster: true })).toEqual([
      'declaration SlotSpec primary valid',
      '  revision 4 in force',
      '    workload svc-slot-primary serving',
      '      pod svc-slot-primary-6-y Ready',
      '    workload svc-slot-primary--b running',
      '      pod svc-slot-primary--b-7-x Unschedulable ! No room',
    ]);
    const tree = treeOf(inputOf({ explanation: { workloads: [], memory: null }, pods }));
    expect(found(tree, 'pod').map(({ facts }) => facts.node)).toEqual(['worker-1', 'worker-1']);
  });
});

describe('the score of a rejected model', () => {
  const rollout = (before: { cases: number; passed: number } | null) =>
    ({ outcome: 'rolled_back', because: '', misses: [], score: { cases: 50, passed: 45, before } }) as const;
  test.each([
    ['against all cases by default', {}, null, [['rejected', 45, 1]]],
    ['against the share that is needed', { pass: 0.95 }, null, [['rejected', 45, 0.95]]],
    [
      'against the former model',
      { pass: 0.5, tolerance: 0.02 },
      { cases: 50, passed: 49 },
      [
        ['rejected', 45, 0.96],
        ['former', 49, 0.96],
      ],
    ],
    [
      'against a former model without cases',
      { pass: 0.5 },
      { cases: 0, passed: 0 },
      [
        ['rejected', 45, 0.5],
        ['former', 0, 0.5],
      ],
    ],
  ] as const)('is held %s', (_name, rules, before, expected) => {
    const scores = scoresOf({ ...slot([], { rollout: { ...rollout(before), misses: [] } }), spec: { rollout: rules } });
    expect(scores.map(({ model, passed, needed }) => [model, passed, needed])).toEqual(expected);
  });

  test('is none without an answer', () => {
    expect(scoresOf(slot([]))).toEqual([]);
    expect(scoresOf(slot([], { rollout: { ...rollout(null), misses: [], score: null } }))).toEqual([]);
  });
});
