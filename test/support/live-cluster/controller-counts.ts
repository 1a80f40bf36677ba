/** Parses the metrics of a controller that the suites check: its requests to the API server, whether it is the leader, and its memory. */

export interface Counts {
  /** `verb resource` → count, whatever the answer. A watch counts when it begins. */
  readonly requests: ReadonlyMap<string, number>;
  readonly leads: boolean;
  readonly residentBytes: number;
}

const REQUEST = /^svc_kube_requests_total\{verb="([^"]+)",resource="([^"]+)",code="[^"]+"\} ([0-9.e+]+)$/;

export function readCounts(text: string): Counts {
  const requests = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, verb, resource, count] = REQUEST.exec(line) ?? [];
    if (verb !== undefined) requests.set(`${verb} ${resource}`, (requests.get(`${verb} ${resource}`) ?? 0) + Number(count));
  }
  return { requests, leads: gauge(text, 'svc_leads') === 1, residentBytes: gauge(text, 'process_resident_memory_bytes') };
}

/** Returns the requests between two readings of the same process, without zeros. */
export function sentBetween(before: Counts, after: Counts): ReadonlyMap<string, number> {
  const grown = [...after.requests].map(([key, count]) => [key, count - (before.requests.get(key) ?? 0)] as const);
  return new Map(grown.filter(([, count]) => count !== 0).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

export function total(sent: ReadonlyMap<string, number>, which: (key: string) => boolean = () => true): number {
  return [...sent].reduce((sum, [key, count]) => (which(key) ? sum + count : sum), 0);
}

/** Whether the request changes an object other than the replica's own Leases, which it uses for leader election and reports. */
export const changesObjects = (key: string): boolean => !/^(?:get|list|watch) /.test(key) && !isOfLeases(key);

export const isOfLeases = (key: string): boolean => key.endsWith(' leases.coordination.k8s.io');

function gauge(text: string, name: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  if (line === undefined) throw new Error(`There is no metric "${name}"`);
  return Number(line.slice(name.length + 1));
}
