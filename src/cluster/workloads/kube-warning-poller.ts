/** Polls the cluster's Events for the reasons why pods do not start, but only while a pod is stuck: otherwise it sends no requests. */
import type { KubeApi } from '../client/ports.ts';
import { EVENTS } from '../client/resource-types.ts';
import type { Clock } from '../../reconciler/ports.ts';
import type { PodFacts } from './decide/pod-facts.ts';
import { isStuck, podsIn, PULLING_SELECTOR, selectWarnings, WARNING_SELECTOR, type PodWarnings } from './decide/pod-warnings.ts';
import { createPoller } from './pollers.ts';

export interface WarningPollerDeps {
  readonly api: KubeApi;
  readonly pods: () => Iterable<PodFacts>;
  /** Aborted while another replica is the leader, which polls instead. */
  readonly term: () => AbortSignal;
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** How often the pods are checked. Default 5 s. */
  readonly lookMs?: number;
}

const LOOK_MS = 5000;
/** For the same stuck pods: kubelets retry after up to two minutes. */
const POLL_AGAIN_MS = 30_000;

export function createWarningPoller({ api, pods, term, clock, lookMs = LOOK_MS }: WarningPollerDeps) {
  let polled: { readonly at: number; readonly uids: string } | undefined;

  async function look(warnings: PodWarnings): Promise<PodWarnings> {
    const signal = term();
    const stuck = signal.aborted ? [] : [...pods()].flatMap((pod) => (isStuck(pod, clock.wallNow()) ? [pod.metadata.uid] : []));
    if (stuck.length === 0) {
      polled = undefined;
      return undefined;
    }
    const uids = stuck.join(' ');
    if (polled?.uids === uids && clock.now() - polled.at < POLL_AGAIN_MS) return warnings;
    polled = { at: clock.now(), uids };
    // A failure, such as a missing permission, leaves the warnings as they are.
    const listed = await api.list(EVENTS, { fieldSelector: WARNING_SELECTOR }, signal);
    if (!listed.ok) return warnings;
    if (selectWarnings(listed.value.items, new Set(stuck), warnings) === undefined) return undefined;
    // A pod that is pulling its image already has its volumes and its network, so its older warnings are obsolete.
    const pulling = await api.list(EVENTS, { fieldSelector: PULLING_SELECTOR }, signal);
    if (!pulling.ok) return warnings;
    const recovered = podsIn(pulling.value.items);
    return selectWarnings(listed.value.items, new Set(stuck.filter((uid) => !recovered.has(uid))), warnings);
  }

  return createPoller({ everyMs: lookMs, look });
}
