/** Why a pod that has a node does not begin: kubelets tell it in Events alone, not in the pod's status. Pure. */
import { z } from 'zod';
import type { KubeObject } from '../../client/ports.ts';
import type { WaitingReason } from '../../../reconciler/ports.ts';
import type { Reason } from '../../../schema/reasons.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import { instant, isOver, isTerminating } from './kube-facts.ts';
import type { ContainerStatus, PodFacts } from './kube-facts.ts';

/** What an Event says of a pod. */
export interface PodWarning {
  readonly reason: WarningReason;
  readonly message: string;
}

/** By the pod's uid; undefined: nothing is said of any. */
export type PodWarnings = ReadonlyMap<string, PodWarning> | undefined;

/** Two questions, since Events of pods that run are many. */
export const WARNING_SELECTOR = 'involvedObject.kind=Pod,type=Warning';
export const PULLING_SELECTOR = 'involvedObject.kind=Pod,reason=Pulling';

/** Mounting and setting up a network take a moment, and often work at the second attempt. */
const PATIENCE_MS = 10_000;

const VOLUME_REASONS = ['FailedMount', 'FailedAttachVolume', 'FailedMapVolume'] as const satisfies readonly Reason[];
const NODE_REASONS = ['FailedCreatePodSandBox', 'NetworkNotReady', 'FailedPrepareDynamicResources'] as const satisfies readonly Reason[];
type WarningReason = (typeof VOLUME_REASONS)[number] | (typeof NODE_REASONS)[number];

/** It has a node and nothing of it was ever begun, nor is it said why in its status. */
export function hasNotBegun(pod: PodFacts): boolean {
  const statuses = [...pod.status.initContainerStatuses, ...pod.status.containerStatuses];
  return pod.spec.nodeName !== undefined && !isOver(pod) && !isTerminating(pod) && statuses.every(isUntouched);
}

const isUntouched = ({ state, lastState }: ContainerStatus): boolean =>
  lastState?.terminated === undefined &&
  state?.running === undefined &&
  state?.terminated === undefined &&
  ['ContainerCreating', 'PodInitializing', undefined].includes(state?.waiting?.reason);

/** Worth asking for the Events of. */
export const isStuck = (pod: PodFacts, now: number): boolean =>
  hasNotBegun(pod) && now - (instant(pod.metadata.creationTimestamp) ?? now) > PATIENCE_MS;

const EventShape = z.object({
  metadata: z.object({ name: z.string(), resourceVersion: z.string().optional(), creationTimestamp: z.string().nullish() }),
  involvedObject: z.object({ uid: z.string() }),
  reason: z.string(),
  message: z.string().default(''),
  lastTimestamp: z.string().nullish(),
  eventTime: z.string().nullish(),
  series: z.object({ lastObservedTime: z.string().nullish() }).nullish(),
});
type EventFacts = z.output<typeof EventShape>;

/** Of the pods with these uids. Kubelets repeat that mounting timed out after the attempt that says why: the why is told. */
export function readWarnings(events: readonly KubeObject[], uids: ReadonlySet<string>, before: PodWarnings): PodWarnings {
  const newest = new Map<string, EventFacts & PodWarning>();
  for (const object of events) {
    const event = EventShape.safeParse(object).data;
    if (event === undefined || !uids.has(event.involvedObject.uid)) continue;
    const reason = [...VOLUME_REASONS, ...NODE_REASONS].find((known) => known === event.reason);
    if (reason === undefined) continue;
    const held = newest.get(event.involvedObject.uid);
    if (held === undefined || isBetter(event, held)) newest.set(event.involvedObject.uid, { ...event, reason });
  }
  const found = new Map([...newest].map(([uid, { reason, message }]) => [uid, { reason, message: withoutIds(message) }] as const));
  if (found.size === 0) return undefined;
  return isSameValue([...(before ?? [])], [...found]) ? before : found;
}

/** Uids of pods of which Events tell. */
export function podsIn(events: readonly KubeObject[]): ReadonlySet<string> {
  return new Set(events.flatMap((object) => EventShape.safeParse(object).data?.involvedObject.uid ?? []));
}

function isBetter(event: EventFacts, held: EventFacts): boolean {
  const [saysLittle, heldSaysLittle] = [isTimeout(event), isTimeout(held)];
  return saysLittle === heldSaysLittle ? lastSeen(event) >= lastSeen(held) : heldSaysLittle;
}

const isTimeout = ({ message }: EventFacts): boolean => message.startsWith('Unable to attach or mount volumes');

const lastSeen = ({ series, lastTimestamp, eventTime, metadata }: EventFacts): number =>
  instant(series?.lastObservedTime) ?? instant(lastTimestamp) ?? instant(eventTime) ?? instant(metadata.creationTimestamp) ?? 0;

/** Each attempt at a sandbox has an id of its own, which would make each a new message. */
const withoutIds = (message: string): string => message.replaceAll(/\s*"?\b[0-9a-f]{64}\b"?/g, '');

export function warnedTrouble(pod: PodFacts, warning: PodWarning | undefined): WaitingReason | undefined {
  if (warning === undefined || !hasNotBegun(pod)) return undefined;
  const { reason, message } = warning;
  const node = `Node "${pod.spec.nodeName ?? ''}"`;
  if (NODE_REASONS.some((known) => known === reason))
    return { kind: 'other', reason, message: `${node} cannot set up the pod, it is tried again: ${cut(message)}` };
  return { kind: 'other', reason, message: volumeMessage(node, message, pod) };
}

function volumeMessage(node: string, cause: string, pod: PodFacts): string {
  const directory = /hostPath type check failed: (\S+) is not a directory/.exec(cause);
  if (directory !== null) {
    const advice = 'Remove it there, or name another path in "storage.hostPath" or in the chart\'s "models.hostPath"';
    return `${node} cannot mount "${directory[1]}": it is not a directory. ${advice}`;
  }
  const inUse = /^Multi-Attach error for volume "([^"]+)"/.exec(cause);
  if (inUse !== null) {
    const advice = 'It is free when the pod there has ended; a claim that several nodes may use has the access mode "ReadWriteMany"';
    return `${node} cannot attach the volume "${inUse[1]}"${claimOf(pod)}, which another node uses. ${advice}`;
  }
  const named = /for volume "([^"]+)"\s*: (.*)$/s.exec(cause);
  if (named !== null)
    return `${node} cannot mount the volume "${named[1]}"${claimOf(pod)}, it is tried again: ${cut(lastLine(named[2] ?? ''))}`;
  return `${node} cannot mount the pod's volumes, it is tried again: ${cut(lastLine(cause))}`;
}

/** Kubelets name the volume, people know the claim. */
function claimOf({ spec }: PodFacts): string {
  const claims = spec.volumes?.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []) ?? [];
  return claims[0] === undefined ? '' : ` of the claim "${claims[0]}"`;
}

/** Of what a mount command printed; without the paths below kubelets' own directory, which have the pod's uid. */
function lastLine(cause: string): string {
  const line = cause.trim().split('\n').at(-1)?.trim() ?? '';
  return line.replaceAll(/\/\S*\/pods\/[0-9a-f-]{36}\/\S*/g, 'its place in the pod');
}

const cut = (text: string): string => (text.length > 400 ? `${text.slice(0, 400)}…` : text);
