/** What is shown of the cluster that a service runs in: who leads, and the pods of the slots. */
import type { SlotName } from '../words/names.ts';
import type { Reason } from './reasons.ts';

/** As Kubernetes names them. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase */
export const POD_PHASES = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const;
export type PodPhase = (typeof POD_PHASES)[number];

export interface PodListing {
  readonly name: string;
  /** Undefined for a pod whose labels name no slot. */
  readonly slot: SlotName | undefined;
  readonly phase: PodPhase;
  /** It gets requests. */
  readonly ready: boolean;
  readonly terminating: boolean;
  /** Restarts of all its containers, as counted by the kubelet. */
  readonly restarts: number;
  /** Undefined while it has none. */
  readonly node: string | undefined;
  /** Unix milliseconds; 0 if it is not known. */
  readonly createdAt: number;
  /** Why it does not run, as far as this replica knows: only the leader reads Events. */
  readonly waiting: { readonly reason: Reason; readonly message: string } | undefined;
}

export interface ClusterListing {
  /** The name of this replica of the gateway. */
  readonly replica: string;
  /** The replica that leads, as far as this one knows; undefined while none does. */
  readonly leader: string | undefined;
  /** This replica executes plans. */
  readonly leads: boolean;
  readonly pods: readonly PodListing[];
}
