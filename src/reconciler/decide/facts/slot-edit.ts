/**
 * What changed in a slot since it was last seen. Autoscalers edit the number of replicas every few seconds, which says
 * nothing about why the slot failed and is no request for it:
 *
 *     nothing                          unchanged
 *     replicas only                    scaled       failures, repairs and the idle time keep counting
 *     replicas only, from zero         scaled-up    as above, and it counts as a use: the slot should run
 *     a text that waits, as it is paused  scaled    as above: nothing in force has changed
 *     anything else, or made again     edited       failures and repairs count from zero, and it counts as a use
 *
 * Pure.
 */
import { createHash } from 'node:crypto';
import { isSameExcept, isSameValue } from '../../../schema/words/same-value.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { DesiredSlot } from '../../ports.ts';

export type SlotEdit = 'unchanged' | 'scaled' | 'scaled-up' | 'edited';
/** In a cluster, `uid` tells an object from one of the same name that was deleted before. */
export type Declared = Pick<DesiredSlot, 'uid' | 'generation' | 'spec' | 'paused'>;

export function classifyEdit(before: Declared | undefined, after: Declared): SlotEdit {
  if (before === undefined || before.uid !== after.uid) return 'edited';
  const isSameGeneration = before.generation === after.generation;
  if (isSameValue(before.spec, after.spec)) {
    if (isSameGeneration) return 'unchanged';
    return after.paused === undefined ? 'edited' : 'scaled';
  }
  // The same generation with another spec is another slot under the same name.
  const isScaled = isSameExcept(before.spec, after.spec, 'cluster') && isSameExcept(before.spec.cluster, after.spec.cluster, 'replicas');
  if (isSameGeneration || !isScaled) return 'edited';
  return before.spec.cluster.replicas === 0 ? 'scaled-up' : 'scaled';
}

/** Sixteen hex digits, equal for specs of one object that differ only in replicas: recorded failures then count. */
export function hashUnscaled({ cluster: { replicas: _replicas, ...cluster }, ...spec }: SlotSpec, uid = ''): string {
  return createHash('sha256')
    .update(`${uid}${JSON.stringify({ ...spec, cluster }, sortKeys)}`)
    .digest('hex')
    .slice(0, 16);
}

/** `JSON.stringify` writes `Infinity` as `null`, and no other value of a spec is one. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
