/** The pods of all slots as users see them. Pure. */
import { LABELS } from '../../../schema/pod/kube-fields.ts';
import { POD_PHASES, type PodListing } from '../../../schema/status/cluster-listing.ts';
import { SlotName } from '../../../schema/words/names.ts';
import { crashReason } from './kubelet-restarts.ts';
import { isOver, isReady, isTerminating, parseTime, type PodFacts } from './pod-facts.ts';
import { endReason, podWaitingReason, type WaitingHints } from './waiting-reason.ts';
import type { KubeObject } from '../../client/ports.ts';
import { slotObjectName } from './object-names.ts';

export const listPods = (pods: readonly PodFacts[], hints: WaitingHints = {}): readonly PodListing[] =>
  pods.map((pod) => listPod(pod, hints));

function listPod(pod: PodFacts, hints: WaitingHints): PodListing {
  const { metadata, spec, status } = pod;
  const waiting = waitingOf(pod, hints);
  return {
    name: metadata.name,
    slot: SlotName.safeParse(metadata.labels[LABELS.slot]).data,
    phase: POD_PHASES.find((phase) => phase === status.phase) ?? 'Unknown',
    ready: isReady(pod) && !isTerminating(pod),
    terminating: isTerminating(pod),
    restarts: [...status.initContainerStatuses, ...status.containerStatuses].reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    node: spec.nodeName,
    createdAt: parseTime(metadata.creationTimestamp) ?? 0,
    waiting: waiting === undefined ? undefined : { reason: waiting.reason, message: waiting.message },
  };
}

function waitingOf(pod: PodFacts, hints: WaitingHints) {
  if (isTerminating(pod) || isReady(pod)) return undefined;
  if (isOver(pod)) return endReason(pod);
  return crashReason(pod) ?? podWaitingReason(pod, hints);
}

/**
 * Objects of slots that were deleted with `--cascade=orphan`. Not Deployments, which the planner stops when their
 * requests have ended, and not claims, which contain models.
 */
interface SlotObjects {
  /** Also invalid ones and those that are being deleted. */
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
