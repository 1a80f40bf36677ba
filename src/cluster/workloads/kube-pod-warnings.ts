/** Why pods do not begin, from the cluster's Events. They are asked for only while a pod is stuck: at rest there are no requests. */
import { sleep } from '../../platform/pause.ts';
import type { KubeApi } from '../client/ports.ts';
import { EVENTS } from '../client/resource-types.ts';
import type { Wake } from '../../reconciler/ports.ts';
import type { PodFacts } from './decide/kube-facts.ts';
import { isStuck, podsIn, PULLING_SELECTOR, readWarnings, WARNING_SELECTOR } from './decide/kube-pod-warnings.ts';
import type { PodWarnings } from './decide/kube-pod-warnings.ts';

export interface PodWarningsDeps {
  readonly api: KubeApi;
  readonly pods: () => Iterable<PodFacts>;
  /** Aborted while another replica leads, which asks then. */
  readonly term: () => AbortSignal;
  /** Unix milliseconds, on the clock of the cluster. */
  readonly now: () => number;
  /** How often the pods are looked through. Default 5 s. */
  readonly lookMs?: number;
}

export interface PodWarningsReader {
  /** Of the pods that were stuck at the last look; the same map as long as nothing else is said. */
  current(): PodWarnings;
  /** Looks until the signal aborts, and wakes when something else is said. */
  follow(wake: Wake, signal: AbortSignal): void;
}

const LOOK_MS = 5000;
/** Of the same pods: kubelets try again after up to two minutes. */
const ASK_AGAIN_MS = 30_000;

export function createPodWarnings({ api, pods, term, now, lookMs = LOOK_MS }: PodWarningsDeps): PodWarningsReader {
  let warnings: PodWarnings;
  let asked: { readonly at: number; readonly of: string } | undefined;

  async function look(): Promise<PodWarnings> {
    const signal = term();
    const stuck = signal.aborted ? [] : [...pods()].flatMap((pod) => (isStuck(pod, now()) ? [pod.metadata.uid] : []));
    if (stuck.length === 0) {
      asked = undefined;
      return undefined;
    }
    const of = stuck.join(' ');
    if (asked?.of === of && now() - asked.at < ASK_AGAIN_MS) return warnings;
    asked = { at: now(), of };
    // Who may not read them gets by without.
    const listed = await api.list(EVENTS, { fieldSelector: WARNING_SELECTOR }, signal);
    if (!listed.ok) return warnings;
    if (readWarnings(listed.value.items, new Set(stuck), warnings) === undefined) return undefined;
    // A pod whose image is being pulled has its volumes and its network: what went wrong before has passed, whatever stands in old Events.
    const pulling = await api.list(EVENTS, { fieldSelector: PULLING_SELECTOR }, signal);
    if (!pulling.ok) return warnings;
    const passed = podsIn(pulling.value.items);
    return readWarnings(listed.value.items, new Set(stuck.filter((uid) => !passed.has(uid))), warnings);
  }

  return {
    current: () => warnings,
    follow(wake, signal) {
      void (async () => {
        while (await untilNext(lookMs, signal)) {
          const found = await look();
          if (found === warnings) continue;
          warnings = found;
          wake();
        }
      })();
    },
  };
}

/** False when the signal has aborted. */
async function untilNext(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, signal);
  return !signal.aborted;
}
