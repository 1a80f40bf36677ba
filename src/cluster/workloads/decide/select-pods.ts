/** The pods of all slots as users see them. Pure. */
import { LABELS } from '../../../schema/pod/kube-fields.ts';
import { POD_PHASES, type PodListing } from '../../../schema/status/cluster-listing.ts';
import { SlotName } from '../../../schema/words/names.ts';
import { crashReason } from './kubelet-restarts.ts';
import { isOver, isReady, isTerminating, parseTime, type PodFacts } from './pod-facts.ts';
import { endReason, podWaitingReason, type WaitingHints } from './waiting-reason.ts';

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
