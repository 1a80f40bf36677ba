/**
 * Finds objects that belong to no slot and to no running server. Kubernetes deletes them with their owner, the SlotSpec,
 * except after `--cascade=orphan`. Deployments are not among them: the planner stops them when their requests have ended.
 * Claims are not, because they contain models. Pure.
 */
import type { KubeObject } from '../../client/ports.ts';
import { LABELS } from '../../../schema/pod/kube-fields.ts';
import { SlotName } from '../../../schema/words/names.ts';
import { slotObjectName } from './object-names.ts';

interface SlotObjects {
  /** The names of all SlotSpecs, even invalid ones and those that are being deleted. */
  readonly slots: { has(name: string): boolean };
  readonly deployments: Iterable<KubeObject>;
  readonly pods: Iterable<KubeObject>;
}

export function findLeftovers(objects: Iterable<KubeObject>, { slots, deployments, pods }: SlotObjects): readonly KubeObject[] {
  const candidates = [...objects].filter((object) => isOwnerless(object) && isNamedBySlot(object) && !slots.has(slotOf(object) ?? ''));
  if (candidates.length === 0) return [];
  const running = new Set([...deployments, ...pods].map(slotOf));
  return candidates.filter((object) => !running.has(slotOf(object)));
}

const isOwnerless = ({ metadata }: KubeObject): boolean =>
  (metadata.ownerReferences ?? []).length === 0 && metadata.deletionTimestamp === undefined;

/** Checks the name too: labels may have been copied to an object that is not ours. */
function isNamedBySlot(object: KubeObject): boolean {
  const slot = SlotName.safeParse(slotOf(object)).data;
  if (slot === undefined) return false;
  const { name } = object.metadata;
  return name === slotObjectName(slot) || name.startsWith(`${slotObjectName(slot)}-`);
}

const slotOf = ({ metadata }: KubeObject): string | undefined => metadata.labels?.[LABELS.slot];
