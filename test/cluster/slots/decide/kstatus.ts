/**
 * Our own implementation of the rules by which kstatus judges a custom resource, to check published statuses against. In this order, as in `Compute` of
 * sigs.k8s.io/cli-utils/pkg/kstatus/status:
 *
 *   1. `metadata.deletionTimestamp` is set                                        Terminating
 *   2. `status.observedGeneration` is there and is not `metadata.generation`      InProgress
 *   3. the first of `Reconciling` and `Stalled` in the list that is "True"        InProgress, or Failed
 *   4. `Ready` is there and is "False" or "Unknown"                               InProgress
 *   5. everything else, also no status at all                                     Current
 */
import { isTable } from '../../../../src/schema/words/key-case.ts';

export type Verdict = 'Terminating' | 'InProgress' | 'Failed' | 'Current';

export function judge(object: {
  readonly metadata: { readonly generation?: number; readonly deletionTimestamp?: string };
  readonly status?: unknown;
}): Verdict {
  const { generation, deletionTimestamp = '' } = object.metadata;
  if (deletionTimestamp !== '') return 'Terminating';
  const status = isTable(object.status) ? object.status : {};
  const { observedGeneration: observed, conditions: listed } = status;
  if (generation !== undefined && typeof observed === 'number' && observed !== generation) return 'InProgress';
  const conditions = Array.isArray(listed) ? listed.filter((value) => isTable(value)) : [];
  for (const { type, status: value } of conditions) {
    if (type === 'Reconciling' && value === 'True') return 'InProgress';
    if (type === 'Stalled' && value === 'True') return 'Failed';
  }
  const ready = conditions.find(({ type }) => type === 'Ready');
  return ready?.['status'] === 'False' || ready?.['status'] === 'Unknown' ? 'InProgress' : 'Current';
}
