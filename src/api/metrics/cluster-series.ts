/** Cluster metrics: requests to the API server, local copies of its objects, writes of status and Events, leader. */
import type { MetricFactory } from './metric-factory.ts';

interface Copy {
  readonly resource: string;
  ageMs(): number;
}

export interface ClusterSources {
  waiting(): Readonly<Record<'status' | 'event', number>>;
  /** Undefined while this replica has not seen who leads. */
  leaderTransitions(): number | undefined;
}

/** A status of HTTP, and not one of the words for requests without an answer. */
const ANSWERED = /^\d/;
const WRITTEN = ['status', 'event'];
const WRITE_RESULTS = ['done', 'conflict', 'failed'];

/** Each method names its labels, because callers may pass objects with more fields. */
export function createClusterSeries({ counter, gauge, histogram, readCounter }: MetricFactory, sources: ClusterSources | undefined) {
  const requests = counter('svc_kube_requests_total');
  const requestSeconds = histogram('svc_kube_request_seconds');
  const lists = counter('svc_kube_copy_lists_total');
  const watches = counter('svc_kube_copy_watches_total');
  const writes = counter('svc_status_writes_total');
  /** Those that are kept up to date at present. */
  const copies = new Set<Copy>();
  gauge('svc_status_writes_waiting', (add) => {
    for (const [what, count] of Object.entries(sources?.waiting() ?? {})) add({ what }, count);
  });
  readCounter('svc_leader_transitions_total', () => sources?.leaderTransitions());
  gauge('svc_kube_copy_age_seconds', (add) => {
    // A copy that ends and its successor overlap for a moment.
    for (const [resource, same] of Map.groupBy(copies, (copy) => copy.resource))
      add({ resource }, Math.max(...same.map(({ ageMs }) => ageMs())) / 1000);
  });
  // A counter that began with its first event would hide that event from `increase()`.
  if (sources !== undefined) for (const what of WRITTEN) for (const result of WRITE_RESULTS) writes.increment({ what, result }, 0);
  return {
    requestEnded({ verb, resource, code, seconds }: Record<'verb' | 'resource' | 'code', string> & { readonly seconds: number }) {
      requests.increment({ verb, resource, code });
      if (ANSWERED.test(code)) requestSeconds.observe({ verb, resource }, seconds);
    },
    copyStarted({ resource, ageMs }: Copy, signal: AbortSignal) {
      const copy = { resource, ageMs };
      if (signal.aborted) return;
      copies.add(copy);
      signal.addEventListener('abort', () => copies.delete(copy), { once: true });
    },
    copyListed: ({ resource, cause }: Readonly<Record<'resource' | 'cause', string>>) => lists.increment({ resource, cause }),
    copyWatchEnded: ({ resource, result }: Readonly<Record<'resource' | 'result', string>>) => watches.increment({ resource, result }),
    publicationEnded: ({ what, result }: Readonly<Record<'what' | 'result', string>>) => writes.increment({ what, result }),
  };
}
