/** What a controller says of itself in its metrics, as far as the suites judge it: the requests it sent to the API server, whether it leads, its memory. */

export interface Counts {
  /** `verb resource` → how many; a watch counts when it begins. */
  readonly requests: ReadonlyMap<string, number>;
  readonly leads: boolean;
  readonly residentBytes: number;
}

const REQUEST = /^svc_kube_requests_total\{verb="([^"]+)",resource="([^"]+)"\} ([0-9.e+]+)$/;

export function readCounts(text: string): Counts {
  const requests = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, verb, resource, count] = REQUEST.exec(line) ?? [];
    if (verb !== undefined) requests.set(`${verb} ${resource}`, Number(count));
  }
  return { requests, leads: gauge(text, 'svc_leads') === 1, residentBytes: gauge(text, 'process_resident_memory_bytes') };
}

/** What was sent between the two, of one life of a controller; nothing that is zero. */
export function sentBetween(before: Counts, after: Counts): ReadonlyMap<string, number> {
  const grown = [...after.requests].map(([key, count]) => [key, count - (before.requests.get(key) ?? 0)] as const);
  return new Map(grown.filter(([, count]) => count !== 0).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

export function total(sent: ReadonlyMap<string, number>, which: (key: string) => boolean = () => true): number {
  return [...sent].reduce((sum, [key, count]) => (which(key) ? sum + count : sum), 0);
}

/** Requests that change an object which is not a replica's own: its own are Leases, by which it runs for office and reports. */
export const changesObjects = (key: string): boolean => !/^(?:get|list|watch) /.test(key) && !isOfLeases(key);

export const isOfLeases = (key: string): boolean => key.endsWith(' leases.coordination.k8s.io');

function gauge(text: string, name: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  if (line === undefined) throw new Error(`There is no metric "${name}"`);
  return Number(line.slice(name.length + 1));
}
