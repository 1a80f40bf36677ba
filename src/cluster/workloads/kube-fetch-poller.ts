/** Reads how far pods are with fetching their models from the logs of their init containers, but only while a pod fetches: otherwise it sends no requests. */
import type { KubeApi } from '../client/ports.ts';
import { withTimeout } from '../client/with-timeout.ts';
import { isFetching, readFetchLine, type FetchProgress } from './decide/fetch-progress.ts';
import type { PodFacts } from './decide/pod-facts.ts';
import { readKubeLogs } from './pod-logs.ts';
import { createPoller } from './pollers.ts';

export interface FetchPollerDeps {
  readonly api: Pick<KubeApi, 'stream'>;
  readonly pods: () => Iterable<PodFacts>;
  /** Aborted while another replica is the leader, which reads the logs instead. */
  readonly term: () => AbortSignal;
  /** How often the logs are read. Default 5 s. */
  readonly lookMs?: number;
}

const LOOK_MS = 5000;
/** Pods whose logs are read at each look; the others are shown without progress. */
const MOST_PODS = 16;
/** A kubelet that does not answer must not hold up the other pods' progress for longer. */
const ANSWER_WITHIN_MS = 10_000;

export function createFetchPoller({ api, pods, term, lookMs = LOOK_MS }: FetchPollerDeps) {
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

  return createPoller({ everyMs: lookMs, look });
}

/** Undefined if the log cannot be read, or says nothing of it. */
async function readProgress(api: Pick<KubeApi, 'stream'>, pod: PodFacts, signal: AbortSignal): Promise<string | undefined> {
  let last: string | undefined;
  for await (const { text } of readKubeLogs(api, pod, { tail: 1, follow: false }, signal)) last = readFetchLine(text) ?? last;
  return last;
}

const isSame = (before: FetchProgress, next: ReadonlyMap<string, string>): boolean =>
  before?.size === next.size && [...next].every(([uid, text]) => before.get(uid) === text);
