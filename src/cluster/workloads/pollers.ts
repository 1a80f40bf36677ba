/** Polls what cannot be watched: the progress of fetching pods, and the warning Events about stuck pods. */
import { sleep } from '../../platform/clock.ts';
import type { Wake, Clock } from '../../reconciler/ports.ts';
import type { KubeApi } from '../client/ports.ts';
import { withTimeout } from '../client/http-client.ts';
import { isFetching, readFetchLine, type FetchProgress } from './decide/waiting-reason.ts';
import type { PodFacts } from './decide/pod-facts.ts';
import { readKubeLogs } from './pod-logs.ts';
import { EVENTS } from '../client/decide/resource-path.ts';
import { isStuck, podsIn, PULLING_SELECTOR, selectWarnings, WARNING_SELECTOR, type PodWarnings } from './decide/pod-warnings.ts';

/** `look` returns the value before, the same object, if nothing has changed. */
function createPoller<Value>(everyMs: number, look: (before: Value | undefined) => Promise<Value | undefined>) {
  let value: Value | undefined;

  async function lookUntilAborted(wake: Wake, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(everyMs, signal);
      if (signal.aborted) return;
      const found = await look(value);
      if (found === value) continue;
      value = found;
      wake();
    }
  }

  return {
    current: (): Value | undefined => value,
    follow: (wake: Wake, signal: AbortSignal): void => void lookUntilAborted(wake, signal),
  };
}

interface PollerDeps<Verb extends keyof KubeApi> {
  readonly api: Pick<KubeApi, Verb>;
  readonly pods: () => Iterable<PodFacts>;
  /** Aborted while another replica is the leader, which reads the logs instead. */
  readonly term: () => AbortSignal;
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  readonly lookMs?: number;
}

const LOOK_MS = 5000;
/** The other pods are shown without progress. */
const MOST_PODS = 16;
/** A kubelet that does not answer must not delay the other pods' progress for longer. */
const ANSWER_WITHIN_MS = 10_000;

/** Sends no requests while no pod fetches its model. */
export function createFetchPoller({ api, pods, term, lookMs = LOOK_MS }: Omit<PollerDeps<'stream'>, 'clock'>) {
  async function look(before: FetchProgress): Promise<FetchProgress> {
    const signal = term();
    if (signal.aborted) return undefined;
    const fetching = [...pods()].filter(isFetching).slice(0, MOST_PODS);
    const found = await Promise.all(
      fetching.map(async (pod) => {
        const text = await withTimeout(ANSWER_WITHIN_MS, signal, async (limited) => await readProgress(api, pod, limited));
        const known = text ?? before?.get(pod.metadata.uid);
        return known === undefined ? [] : [[pod.metadata.uid, known] as const];
      }),
    );
    const next = new Map(found.flat());
    return next.size === 0 ? undefined : isSame(before, next) ? before : next;
  }

  return createPoller(lookMs, look);
}

async function readProgress(api: Pick<KubeApi, 'stream'>, pod: PodFacts, signal: AbortSignal): Promise<string | undefined> {
  let last: string | undefined;
  for await (const { text } of readKubeLogs(api, pod, { tail: 1, follow: false }, signal)) last = readFetchLine(text) ?? last;
  return last;
}

const isSame = (before: FetchProgress, next: ReadonlyMap<string, string>): boolean =>
  before?.size === next.size && [...next].every(([uid, text]) => before.get(uid) === text);

/** Interval for the same stuck pods: kubelets retry after up to two minutes. */
const POLL_AGAIN_MS = 30_000;

/** Sends no requests while no pod is stuck. */
export function createWarningPoller({ api, pods, term, clock, lookMs = LOOK_MS }: PollerDeps<'list'>) {
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

  return createPoller(lookMs, look);
}
