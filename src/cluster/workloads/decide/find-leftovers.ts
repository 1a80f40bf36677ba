/**
 * Finds Services and ConfigMaps of slots that no longer exist. Kubernetes deletes them together with their SlotSpec, which owns them, unless somebody deleted
 * it with `--cascade=orphan`: then they own themselves, and nobody else would ever remove them. Deployments are not looked for here, because the planner lets
 * their requests end and stops them; claims are not, because they contain models. Pure.
 */
import type { KubeObject } from '../../client/ports.ts';
import { SlotName } from '../../../schema/words/names.ts';
import { LABELS } from '../../../schema/object-labels.ts';
import { slotObjectName } from './object-names.ts';

export interface SlotObjects {
  /** The names of all SlotSpecs, also of invalid ones and of those that are being deleted. */
  readonly slots: { has(name: string): boolean };
  readonly deployments: Iterable<KubeObject>;
  readonly pods: Iterable<KubeObject>;
}

/** Returns those of `objects` that belong to no slot and to no server that still runs. */
export function findLeftovers(objects: Iterable<KubeObject>, { slots, deployments, pods }: SlotObjects): readonly KubeObject[] {
  const candidates = [...objects].filter((object) => isOwnerless(object) && isNamedBySlot(object) && !slots.has(slotOf(object) ?? ''));
  if (candidates.length === 0) return [];
  const running = new Set([...deployments, ...pods].map(slotOf));
  return candidates.filter((object) => !running.has(slotOf(object)));
}

/** An object with an owner is deleted by Kubernetes when its owner is gone. */
function isOwnerless({ metadata }: KubeObject): boolean {
  return (metadata.ownerReferences ?? []).length === 0 && metadata.deletionTimestamp === undefined;
}

/** The name is checked as well: labels may have been copied to an object that is not ours. */
function isNamedBySlot(object: KubeObject): boolean {
  const slot = SlotName.safeParse(slotOf(object)).data;
  if (slot === undefined) return false;
  const { name } = object.metadata;
  return name === slotObjectName(slot) || name.startsWith(`${slotObjectName(slot)}-`);
}

const slotOf = ({ metadata }: KubeObject): string | undefined => metadata.labels?.[LABELS.slot];
