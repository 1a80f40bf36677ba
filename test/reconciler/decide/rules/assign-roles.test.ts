import { describe, expect, test } from '@jest/globals';
import { gather } from '../../../../src/reconciler/decide/facts/gather.ts';
import { slotFactsOf } from '../../../../src/reconciler/decide/facts/slot-facts.ts';
import { viewSlot } from '../../../../src/reconciler/decide/facts/view.ts';
import { assignRoles, type RoleRules } from '../../../../src/reconciler/decide/rules/assign-roles.ts';
import type { Action } from '../../../../src/reconciler/decide/facts/actions.ts';
import { plan } from '../../../../src/reconciler/decide/plan.ts';
import { WorkloadId } from '../../../../src/schema/words/names.ts';
import { factsOf, failed, NOW, PRIMARY, type Scene } from '../plan-fixture.ts';

const FREE: RoleRules = { unwanted: undefined, asleep: false, fitsAwake: true, startable: true, fitsNow: true, fitsBeside: true };
const pods = { network: 'pods', images: false } as const;
const old = { id: 'w0', revision: 'other', name: 'svc-slot-primary' } as const;
const next = { id: 'w1', name: 'svc-slot-primary--next', port: 18_081 } as const;
const loading = { ...next, probe: 'loading', seen: 100 } as const;
const pending = {
  ...next,
  phase: 'created',
  probe: 'none',
  fact: { waitingReason: { kind: 'placement', reason: 'Unschedulable', message: 'No room' } },
} as const;

interface Options {
  readonly rules?: Partial<RoleRules>;
  readonly lastServing?: string;
  /** The start of a workload of the slot is under way. */
  readonly applying?: boolean;
  /** The stop of a workload that is gone already is under way. */
  readonly stopping?: boolean;
}

/** `serves w0, starts w1, drains w2 (Reason), start, waits (Reason)`. */
function rolesOf(scene: Scene, { rules, lastServing, applying = false, stopping = false }: Options = {}): string {
  const { desired, observed, slot } = factsOf(scene);
  const running = new Map(applying ? startOf(scene).map((action) => [`apply:${PRIMARY}`, { action, startedAt: NOW }] as const) : []);
  const view = viewSlot(slotFactsOf(slot, gather(desired, { ...observed, running }, NOW)), NOW);
  const serving = lastServing === undefined ? undefined : WorkloadId.parse(lastServing);
  const roles = assignRoles({ ...view, stopping, lastServing: serving }, { ...FREE, ...rules });
  return [
    ...(roles.serving === undefined ? [] : [`serves ${roles.serving.fact.id}`]),
    ...(roles.starting === undefined ? [] : [`starts ${roles.starting.fact.id}`]),
    ...(roles.unprobed === undefined ? [] : [`asks ${roles.unprobed.fact.id}`]),
    ...roles.draining.map(
      ({ workload, because, failure }) => `drains ${workload.fact.id} (${because.reason}${failure === undefined ? '' : ' counts'})`,
    ),
    ...(roles.start ? ['start'] : []),
    ...(roles.waitsFor === undefined ? [] : [`waits (${roles.waitsFor.reason})`]),
  ].join(', ');
}

function startOf(scene: Scene): readonly Action[] {
  const { desired, observed } = factsOf({ ...scene, workloads: [] });
  return plan(desired, observed, NOW).actions.filter(({ name }) => name === 'apply');
}

const UNWANTED = { reason: 'Disabled', message: 'Slot is off: "enabled" is false' } as const;
const NOT_ASKED = { reason: 'NotAskedFor', message: 'Every request has left' } as const;
const NO_MEMORY = { reason: 'InsufficientMemory', message: 'Others come first' } as const;

const CASES: Readonly<Record<string, readonly [Scene, Options, string]>> = {
  'the old one serves until the new one passes': [{ workloads: [old, loading] }, {}, 'serves w0, starts w1'],
  'the old one leaves when the new one passes': [{ workloads: [old, next] }, {}, 'serves w1, drains w0 (RevisionOutdated)'],
  'an altered one that is not repaired leaves when another one answers, which is no repair': [
    {
      slot: { lifecycle: { drift: 'warn' } },
      workloads: [{ ...old, revision: 'current', altered: { argv: ['x'] } }, next],
    },
    { lastServing: 'w0' },
    'serves w1, drains w0 (WorkloadSurplus)',
  ],
  'an altered one is replaced, which counts': [
    { workloads: [{ ...old, revision: 'current', altered: { argv: ['x'] } }, next] },
    {},
    'serves w1, drains w0 (WorkloadAltered counts)',
  ],
  'two altered ones are replaced, which counts as one repair': [
    {
      workloads: [
        { ...old, revision: 'current', probe: 'loading', altered: { argv: ['x'] } },
        { ...loading, altered: { argv: ['x'] } },
      ],
    },
    {},
    'drains w0 (WorkloadAltered counts), drains w1 (WorkloadAltered), waits (WorkloadsLeaving)',
  ],
  'pods: the old one makes room for one that cannot be scheduled': [
    { traits: pods, workloads: [old, pending] },
    {},
    'starts w1, drains w0 (RoomNeeded)',
  ],
  'pods: not with a blue-green swap': [
    { traits: pods, slot: { lifecycle: { swap: 'blue-green' } }, workloads: [old, pending] },
    {},
    'serves w0, starts w1',
  ],
  'pods: not for one that waits for its image': [
    {
      traits: pods,
      workloads: [old, { ...pending, fact: { waitingReason: { kind: 'image', reason: 'ImagePullBackOff', message: 'Wait' } } }],
    },
    {},
    'serves w0, starts w1',
  ],
  'pods: a drain that has begun is continued': [
    { traits: pods, workloads: [{ ...old, draining: 10 }, loading] },
    {},
    'starts w1, drains w0 (RoomNeeded)',
  ],
  'pods: not once the new one has passed': [
    {
      traits: pods,
      workloads: [
        { ...old, draining: 10 },
        { ...next, fact: { endpoints: [] } },
      ],
    },
    {},
    'serves w0, starts w1',
  ],
  'host: a drain that has begun does not matter': [{ workloads: [{ ...old, draining: 10 }, loading] }, {}, 'serves w0, starts w1'],
  'of two, the one that served is kept': [
    { workloads: [next, { ...next, id: 'w2', name: 'b' }] },
    { lastServing: 'w2' },
    'serves w2, drains w1 (WorkloadSurplus)',
  ],
  'of two, the one that does not drain is kept': [
    {
      workloads: [
        { ...next, draining: 10 },
        { ...next, id: 'w2', name: 'b' },
      ],
    },
    {},
    'serves w2, drains w1 (WorkloadSurplus)',
  ],
  'of two, the one that passes is kept, whatever served': [
    { workloads: [loading, { ...next, id: 'w2', name: 'b', draining: 10 }] },
    { lastServing: 'w1' },
    'serves w2, drains w1 (WorkloadSurplus)',
  ],
  'of two, the oldest is kept': [
    {
      workloads: [
        { ...next, seen: 10 },
        { ...next, id: 'w2', name: 'b', seen: 20 },
      ],
    },
    {},
    'serves w2, drains w1 (WorkloadSurplus)',
  ],
  'of two of the same age, the first by name is kept': [
    { workloads: [{ ...next, id: 'w2' }, next] },
    {},
    'serves w1, drains w2 (WorkloadSurplus)',
  ],
  'a new one starts beside the old one': [{ workloads: [old] }, {}, 'serves w0, start'],
  'the old one drains first where both do not fit': [
    { workloads: [old] },
    { rules: { fitsBeside: false } },
    'drains w0 (RevisionOutdated)',
  ],
  'but not with a blue-green swap': [
    { slot: { lifecycle: { swap: 'blue-green' } }, workloads: [old] },
    { rules: { fitsBeside: false } },
    'serves w0, start',
  ],
  'the old one drains first with the swap drain': [
    { slot: { lifecycle: { swap: 'drain' } }, workloads: [old] },
    {},
    'drains w0 (RevisionOutdated)',
  ],
  'the old one that has begun to drain goes on, even if both fit by now': [
    { workloads: [{ ...old, draining: 10 }] },
    {},
    'drains w0 (RevisionOutdated)',
  ],
  'the old one stays while nothing can start': [{ workloads: [old] }, { rules: { startable: false } }, 'serves w0'],
  'the old one stays while the new one is being started': [{ workloads: [old] }, { applying: true }, 'serves w0'],
  'the start waits for other workloads to end': [
    { workloads: [old, { ...old, id: 'w2', name: 'b' }] },
    { lastServing: 'w0' },
    'serves w0, drains w2 (RevisionOutdated), waits (WorkloadsLeaving)',
  ],
  'the start waits for the stop of one that is gone already': [
    { workloads: [old] },
    { stopping: true },
    'serves w0, waits (WorkloadsLeaving)',
  ],
  'a drain waits for it as well': [
    { slot: { lifecycle: { swap: 'drain' } }, workloads: [old] },
    { stopping: true },
    'serves w0, waits (WorkloadsLeaving)',
  ],
  'without a workload, none starts beside a stop': [{}, { stopping: true }, ''],
  'an old one without an endpoint gives way': [
    { traits: pods, workloads: [{ ...old, fact: { endpoints: [] } }] },
    {},
    'drains w0 (RevisionOutdated)',
  ],
  'an old one that was found is asked first': [{ workloads: [{ ...old, probe: 'none' }] }, {}, 'asks w0, waits (WorkloadsLeaving)'],
  'only one of two that were found is asked': [
    {
      workloads: [
        { ...old, probe: 'none' },
        { ...old, id: 'w2', name: 'b', probe: 'none' },
      ],
    },
    {},
    'asks w0, drains w2 (RevisionOutdated), waits (WorkloadsLeaving)',
  ],
  'none is asked beside one that passes': [
    { workloads: [old, { ...old, id: 'w2', name: 'b', probe: 'none' }] },
    {},
    'serves w0, drains w2 (RevisionOutdated), waits (WorkloadsLeaving)',
  ],
  'without a workload, one starts': [{}, {}, 'start'],
  'but not before there is memory': [{}, { rules: { fitsNow: false } }, 'waits (MemoryNotFree)'],
  'nor while one is being started': [{}, { applying: true }, ''],
  'nor while something prevents it': [{}, { rules: { startable: false } }, ''],
  'an unwanted slot drains all it has': [
    { workloads: [old, next] },
    { rules: { unwanted: UNWANTED } },
    'drains w0 (Disabled), drains w1 (Disabled)',
  ],
  'but not what is being started': [
    { workloads: [old, { id: 'w1' }] },
    { rules: { unwanted: UNWANTED }, applying: true },
    'drains w0 (Disabled)',
  ],
  'memory that is taken from a server before it has answered counts as a failure': [
    { workloads: [{ id: 'w1', probe: 'loading', started: true }] },
    { rules: { unwanted: NO_MEMORY } },
    'drains w1 (InsufficientMemory counts)',
  ],
  'also where an earlier workload of the slot failed': [
    { failures: [failed(60_000, 'crash')], workloads: [{ id: 'w1', probe: 'loading', started: true }] },
    { rules: { unwanted: NO_MEMORY } },
    'drains w1 (InsufficientMemory counts)',
  ],
  'but counts once': [
    {
      failures: [{ ...failed(60_000, 'withdrawn'), workload: WorkloadId.parse('w1') }, failed(30_000, 'crash')],
      workloads: [{ id: 'w1', probe: 'loading', started: true }],
    },
    { rules: { unwanted: NO_MEMORY } },
    'drains w1 (InsufficientMemory)',
  ],
  'and not for one that has answered': [
    { workloads: [{ id: 'w1', started: true }] },
    { rules: { unwanted: NO_MEMORY } },
    'drains w1 (InsufficientMemory)',
  ],
  'a crash counts while the model is missing, if the workload was started for this spec': [
    { model: 'missing', workloads: [{ id: 'w1', started: true, phase: 'exited' }] },
    { rules: { startable: false } },
    'drains w1 (Crashed counts)',
  ],
  'a crash counts although nobody asks for the slot any more': [
    { workloads: [{ id: 'w1', started: true, phase: 'exited' }] },
    { rules: { unwanted: NOT_ASKED } },
    'drains w1 (Crashed counts)',
  ],
  'and not if an earlier controller, which may have told it to end, started it': [
    { workloads: [{ id: 'w1', phase: 'exited' }] },
    { rules: { unwanted: NOT_ASKED } },
    'drains w1 (Crashed)',
  ],
  'and not while the model is missing, if an earlier controller started it': [
    { model: 'missing', workloads: [{ id: 'w1', phase: 'exited' }] },
    { rules: { startable: false } },
    'drains w1 (Crashed)',
  ],
};

describe('the roles of workloads:', () => {
  for (const [sentence, [scene, options, roles]] of Object.entries(CASES)) {
    test(`${sentence}`, () => expect(rolesOf(scene, options)).toBe(roles));
  }

  test('a crash counts while the model is missing, also after the same text was read again', () => {
    const { desired, observed, slot } = factsOf({ model: 'missing', workloads: [{ id: 'w1', started: true, phase: 'exited' }] });
    const view = viewSlot(slotFactsOf(slot, gather(desired, observed, NOW)), NOW);
    const again = { ...view, spec: { ...view.spec } };
    expect(assignRoles(again, { ...FREE, startable: false }).draining.map(({ failure }) => failure?.kind)).toEqual(['crash']);
  });
});
