import { describe, expect, test } from '@jest/globals';
import { deriveState, type StateFacts } from '../../../../src/reconciler/decide/rules/derive-state.ts';
import type { SlotState } from '../../../../src/schema/status/slot-status.ts';

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
