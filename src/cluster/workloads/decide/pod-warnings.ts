/** Selects the Event that explains why a scheduled pod does not start, such as a failed mount. Pure. */
import { z } from 'zod';
import type { KubeObject } from '../../client/ports.ts';
import type { WaitingReason } from '../../../reconciler/ports.ts';
import type { Reason } from '../../../schema/status/reasons.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { isOver, isTerminating, parseTime, type ContainerStatus, type PodFacts } from './pod-facts.ts';
import { truncate } from '../../client/decide/object-fields.ts';

export interface PodWarning {
  readonly reason: WarningReason;
  readonly message: string;
}

export type PodWarnings = ReadonlyMap<string, PodWarning> | undefined;

/** Two requests, since running pods have many Events. */
export const WARNING_SELECTOR = 'involvedObject.kind=Pod,type=Warning';
export const PULLING_SELECTOR = 'involvedObject.kind=Pod,reason=Pulling';

/** Mounting and network set-up take a moment, and often succeed at the second attempt. */
const STUCK_AFTER_MS = 10_000;

const VOLUME_REASONS = ['FailedMount', 'FailedAttachVolume', 'FailedMapVolume'] as const satisfies readonly Reason[];
const NODE_REASONS = ['FailedCreatePodSandBox', 'NetworkNotReady', 'FailedPrepareDynamicResources'] as const satisfies readonly Reason[];
type WarningReason = (typeof VOLUME_REASONS)[number] | (typeof NODE_REASONS)[number];

/** Whether the pod has a node, none of its containers was ever started, and its status does not explain why. */
export function hasNotStarted(pod: PodFacts): boolean {
  const statuses = [...pod.status.initContainerStatuses, ...pod.status.containerStatuses];
  return pod.spec.nodeName !== undefined && !isOver(pod) && !isTerminating(pod) && statuses.every(isUnstarted);
}

const isUnstarted = ({ state, lastState }: ContainerStatus): boolean =>
  lastState?.terminated === undefined &&
  state?.running === undefined &&
  state?.terminated === undefined &&
  ['ContainerCreating', 'PodInitializing', undefined].includes(state?.waiting?.reason);

export const isStuck = (pod: PodFacts, now: number): boolean =>
  hasNotStarted(pod) && now - (parseTime(pod.metadata.creationTimestamp) ?? now) > STUCK_AFTER_MS;

const EventShape = z.object({
  metadata: z.object({ creationTimestamp: z.string().nullish() }),
  involvedObject: z.object({ uid: z.string() }),
  reason: z.string(),
  message: z.string().default(''),
  lastTimestamp: z.string().nullish(),
  eventTime: z.string().nullish(),
  series: z.object({ lastObservedTime: z.string().nullish() }).nullish(),
});
type EventFacts = z.output<typeof EventShape>;

/** After the Event with the cause, kubelets repeat one that only reports a timeout: the cause wins. */
export function selectWarnings(events: readonly KubeObject[], uids: ReadonlySet<string>, previous: PodWarnings): PodWarnings {
  const byPod = new Map<string, EventFacts & PodWarning>();
  for (const object of events) {
    const event = EventShape.safeParse(object).data;
    if (event === undefined || !uids.has(event.involvedObject.uid)) continue;
    const reason = [...VOLUME_REASONS, ...NODE_REASONS].find((known) => known === event.reason);
    if (reason === undefined) continue;
    const best = byPod.get(event.involvedObject.uid);
    if (best === undefined || isBetter(event, best)) byPod.set(event.involvedObject.uid, { ...event, reason });
  }
  const found = new Map([...byPod].map(([uid, { reason, message }]) => [uid, { reason, message: withoutIds(message) }] as const));
  if (found.size === 0) return undefined;
  return isSameValue([...(previous ?? [])], [...found]) ? previous : found;
}

export const podsIn = (events: readonly KubeObject[]): ReadonlySet<string> =>
  new Set(events.flatMap((object) => EventShape.safeParse(object).data?.involvedObject.uid ?? []));

const isBetter = (event: EventFacts, best: EventFacts): boolean =>
  isTimeout(event) === isTimeout(best) ? lastSeen(event) >= lastSeen(best) : isTimeout(best);

const isTimeout = ({ message }: EventFacts): boolean => message.startsWith('Unable to attach or mount volumes');

const lastSeen = ({ series, lastTimestamp, eventTime, metadata }: EventFacts): number =>
  parseTime(series?.lastObservedTime) ?? parseTime(lastTimestamp) ?? parseTime(eventTime) ?? parseTime(metadata.creationTimestamp) ?? 0;

/** Removes sandbox ids: each attempt has its own, which would make each a new message. */
const withoutIds = (message: string): string => message.replaceAll(/\s*"?\b[0-9a-f]{64}\b"?/g, '');

export function warningReason(pod: PodFacts, warning: PodWarning | undefined): WaitingReason | undefined {
  if (warning === undefined || !hasNotStarted(pod)) return undefined;
  const { reason, message } = warning;
  const node = `Node "${pod.spec.nodeName ?? ''}"`;
  const text = NODE_REASONS.some((known) => known === reason)
    ? `${node} cannot set up the pod and will retry: ${truncate(message)}`
    : volumeMessage(node, message, pod);
  return { kind: 'other', reason, message: text };
}

function volumeMessage(node: string, cause: string, pod: PodFacts): string {
  const directory = /hostPath type check failed: (\S+) is not a directory/.exec(cause);
  if (directory !== null) {
    const advice = 'Remove it there, or name another path in "storage.hostPath" or in the chart\'s "models.hostPath"';
    return `${node} cannot mount "${directory[1]}": it is not a directory. ${advice}`;
  }
  const inUse = /^Multi-Attach error for volume "([^"]+)"/.exec(cause);
  if (inUse !== null) {
    const advice =
      'It becomes free when the pod there has ended; to share a claim between nodes, use the access mode "ReadWriteMany" ("storage.accessModes")';
    return `${node} cannot attach the volume "${inUse[1]}"${claimOf(pod, inUse[1] ?? '')}, which another node uses. ${advice}`;
  }
  const named = /for volume "([^"]+)"\s*: (.*)$/s.exec(cause);
  if (named !== null)
    return `${node} cannot mount the volume "${named[1]}"${claimOf(pod, named[1] ?? '')} and will retry: ${truncate(lastLine(named[2] ?? ''))}`;
  return `${node} cannot mount the pod's volumes and will retry: ${truncate(lastLine(cause))}`;
}

/** Kubelets name the volume, but users know the claim. Empty if several claims could be meant. */
function claimOf({ spec: { volumes = [] } }: PodFacts, named: string): string {
  const inPod = volumes.filter(({ name }) => name === named);
  const claims = (inPod.length > 0 ? inPod : volumes).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
  return claims.length === 1 ? ` of the claim "${claims[0]}"` : '';
}

/** The last line of a mount command, without paths in the kubelet's directory, which contain the pod's uid. */
function lastLine(cause: string): string {
  const line = cause.trim().split('\n').at(-1)?.trim() ?? '';
  return line.replaceAll(/\/\S*\/pods\/[0-9a-f-]{36}\/\S*/g, 'its mount point in the pod');
}
