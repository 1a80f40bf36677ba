/** The requests that the fake API server received, and its injected faults. */
import { setTimeout as sleep } from 'node:timers/promises';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'other';

export interface LoggedRequest {
  readonly at: number;
  readonly verb: Verb;
  /** `slotspecs`; empty for paths that are not a resource. */
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Path and query. */
  readonly url: string;
  readonly userAgent: string;
  readonly authorization: string;
  /** 0 until the response is sent. */
  status: number;
}

/** All given fields must match. */
export interface RequestFilter {
  readonly verb?: Verb | readonly Verb[];
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly userAgent?: string | RegExp;
}

export interface InjectedAnswer {
  /** `cut`: the connection breaks before any response. */
  readonly status: number | 'cut';
  readonly reason?: string;
  readonly message?: string;
  readonly retryAfterSeconds?: number;
}

export interface FakeFaults {
  readonly requests: readonly LoggedRequest[];
  count(filter?: RequestFilter): number;
  clearLog(): void;
  /** Sends this response to the next `times` matching requests. Without `times`, to all until the returned function is called. */
  answer(filter: RequestFilter, answer: InjectedAnswer, times?: number): () => void;
  /** Delays matching requests, until the returned function is called. */
  delay(filter: RequestFilter, ms: number): () => void;
  /** Called by the server. */
  record(request: LoggedRequest): void;
  /** Called by the server. Waits for the delays, and returns the injected response, if any. */
  apply(request: LoggedRequest): Promise<InjectedAnswer | undefined>;
}

interface Fault {
  readonly filter: RequestFilter;
  readonly answer: InjectedAnswer;
  left: number;
}

export function createFakeFaults(): FakeFaults {
  let requests: LoggedRequest[] = [];
  const pending = new Set<Fault>();
  const delays = new Set<{ readonly filter: RequestFilter; readonly ms: number }>();
  return {
    get requests() {
      return requests;
    },
    count: (filter = {}) => requests.filter((request) => matches(filter, request)).length,
    clearLog() {
      requests = [];
    },
    answer(filter, answer, times = Number.POSITIVE_INFINITY) {
      const fault = { filter, answer, left: times };
      pending.add(fault);
      return () => pending.delete(fault);
    },
    delay(filter, ms) {
      const delay = { filter, ms };
      delays.add(delay);
      return () => delays.delete(delay);
    },
    record: (request) => void requests.push(request),
    async apply(request) {
      for (const { filter, ms } of delays) if (matches(filter, request)) await sleep(ms, undefined, { ref: false });
      const fault = [...pending].find(({ left, filter }) => left > 0 && matches(filter, request));
      if (fault === undefined) return undefined;
      fault.left -= 1;
      return fault.answer;
    },
  };
}

function matches(filter: RequestFilter, request: LoggedRequest): boolean {
  const { verb, resource, subresource, name, userAgent } = filter;
  if (verb !== undefined && !(typeof verb === 'string' ? verb === request.verb : verb.includes(request.verb))) return false;
  if (resource !== undefined && resource !== request.resource) return false;
  if (subresource !== undefined && subresource !== request.subresource) return false;
  if (name !== undefined && name !== request.name) return false;
  if (userAgent === undefined) return true;
  return typeof userAgent === 'string' ? userAgent === request.userAgent : userAgent.test(request.userAgent);
}
