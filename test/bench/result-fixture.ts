/** Results as `npm run bench -- --save` writes them. */
import type { Goal, Machine, Result } from '../../bench/decide/result.ts';

const MACHINE: Machine = {
  cpu: 'Some CPU',
  cores: 2,
  arch: 'x64',
  memoryGb: 8,
  kernel: '6.1.0',
  node: '24.21.0',
  programs: { nginx: '1.22.1', wrk: '4.1.0' },
  loadAverage: 0.2,
};

interface Parts extends Partial<Omit<Result, 'machine'>> {
  readonly machine?: Partial<Machine>;
}

export function resultOf({ machine, ...part }: Parts): Result {
  return {
    savedAt: '2026-01-01T10:20:30.000Z',
    commit: '0123456789abcdef',
    modified: false,
    measurements: {},
    ...part,
    machine: { ...MACHINE, ...machine },
  };
}

export function measurementsOf(goals: readonly Goal[]): Result['measurements'] {
  return { gateway: { goals: [...goals], tables: [] } };
}
