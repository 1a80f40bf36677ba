import { describe, expect, test } from '@jest/globals';
import { gather } from '../../../../src/reconciler/decide/facts/gather.ts';
import { slotFactsOf } from '../../../../src/reconciler/decide/facts/slot-facts.ts';
import { viewSlot } from '../../../../src/reconciler/decide/facts/view.ts';
import { assignRoles } from '../../../../src/reconciler/decide/rules/assign-roles.ts';
import { deriveState, stateFactsOf, type StateFacts } from '../../../../src/reconciler/decide/rules/derive-state.ts';
import type { SlotState } from '../../../../src/schema/status/slot-status.ts';
import { WorkloadId } from '../../../../src/schema/words/names.ts';
import { factsOf, NOW, PRIMARY, type Scene } from '../plan-fixture.ts';

const WORKLOADS = ['none', 'created', 'running', 'draining'] as const;
const FLAGS = ['fetching', 'passing', 'inFlight', 'served', 'applying', 'pulling'] as const;

const ALL: readonly StateFacts[] = WORKLOADS.flatMap((workload) =>
  Array.from({ length: 2 ** FLAGS.length }, (_, bits) => {
    const on = (flag: (typeof FLAGS)[number]): boolean => ((bits >> FLAGS.indexOf(flag)) & 1) === 1;
    return {
      workload,
      fetching: on('fetching'),
      passing: on('passing'),
      inFlight: on('inFlight'),
      served: on('served'),
      applying: on('applying'),
      pulling: on('pulling'),
    };
  }),
);

/** The same rules, written as a list of patterns: the first one that fits decides. */
const RULES: readonly (readonly [Partial<StateFacts>, SlotState])[] = [
  [{ workload: 'draining' }, 'unloading'],
  [{ workload: 'created', fetching: true }, 'pulling'],
  [{ workload: 'created' }, 'starting'],
  [{ workload: 'running', passing: true, inFlight: true }, 'serving'],
  [{ workload: 'running', passing: true, served: true }, 'idle'],
  [{ workload: 'running', passing: true }, 'ready'],
  [{ workload: 'running' }, 'warming'],
  [{ workload: 'none', applying: true }, 'starting'],
  [{ workload: 'none', pulling: true }, 'pulling'],
  [{ workload: 'none' }, 'offline'],
];

describe('deriveState()', () => {
  test('returns a state for every combination of facts', () => {
    expect(ALL).toHaveLength(256);
    for (const facts of ALL) {
      const rule = RULES.find(([pattern]) => Object.entries(pattern).every(([key, value]) => Reflect.get(facts, key) === value));
      expect([facts, deriveState(facts)]).toEqual([facts, rule?.[1]]);
    }
  });

  test('reaches each of the eight states', () => {
    expect(new Set(ALL.map(deriveState)).size).toBe(8);
  });

  test('is warming until the probe passes, whatever else is true', () => {
    const running = ALL.filter(({ workload, passing }) => workload === 'running' && !passing);
    expect(new Set(running.map(deriveState))).toEqual(new Set(['warming']));
  });
});

describe('the workload that represents a slot', () => {
  const old = { id: 'w0', revision: 'other', name: 'svc-slot-primary' } as const;
  const next = { id: 'w1', name: 'svc-slot-primary--next', port: 18_081, probe: 'none' } as const;

  /** While the stop of `w0` is under way. */
  const representedBy = (scene: Scene): StateFacts['workload'] => {
    const { desired, observed, slot } = factsOf(scene);
    const workload = WorkloadId.parse('w0');
    const args = { slot: PRIMARY, workload, graceMs: 0, abort: false, failure: undefined };
    const action = { name: 'stop', slot: PRIMARY, because: { reason: 'RoomNeeded', message: '' }, args } as const;
    const running = new Map([[`stop:${workload}`, { action, startedAt: NOW }]]);
    const view = viewSlot(slotFactsOf(slot, gather(desired, { ...observed, running }, NOW)), NOW);
    const roles = assignRoles(view, {
      unwanted: undefined,
      asleep: false,
      fitsAwake: true,
      startable: true,
      fitsNow: true,
      fitsBeside: true,
    });
    return stateFactsOf(view, roles).workload;
  };

  test.each<readonly [string, Scene, StateFacts['workload']]>([
    ['drains until its stop, which may fail, has ended', { workloads: [old, { ...next, started: true, phase: 'created' }] }, 'draining'],
    ['also where nothing follows it', { workloads: [old] }, 'draining'],
    ['is the next one once that runs', { workloads: [old, next] }, 'running'],
    [
      'is the next one once this one has ended',
      {
        workloads: [
          { ...old, phase: 'exited' },
          { ...next, started: true, phase: 'created' },
        ],
      },
      'created',
    ],
  ])('%s', (_sentence, scene, expected) => expect(representedBy(scene)).toBe(expected));
});
