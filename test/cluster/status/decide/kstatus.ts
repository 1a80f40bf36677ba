/** Our own implementation of the rules by which kstatus judges a custom resource, to check published statuses against. */
import { isTable } from '../../../../src/schema/key-case.ts';

export type Verdict = 'InProgress' | 'Failed' | 'Current';

export function judge(generation: number, status: unknown): Verdict {
  if (!isTable(status)) return 'Current';
  if (typeof status['observedGeneration'] === 'number' && status['observedGeneration'] !== generation) return 'InProgress';
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].filter((value) => isTable(value)) : [];
  // The first true condition decides, in the order of the list.
  for (const { type, status: value } of conditions) {
    if (type === 'Reconciling' && value === 'True') return 'InProgress';
    if (type === 'Stalled' && value === 'True') return 'Failed';
  }
  const ready = conditions.find(({ type }) => type === 'Ready');
  return ready === undefined || ready['status'] === 'True' ? 'Current' : 'InProgress';
}
