/** What the fake API server was asked, and the faults it has been ordered to have. */
import { setTimeout as sleep } from 'node:timers/promises';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'other';

export interface LoggedRequest {
  readonly at: number;
  readonly verb: Verb;
  /** `slotspecs`; empty for paths that are no resource. */
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Path and query. */
  readonly url: string;
  readonly userAgent: string;
  readonly authorization: string;
  /** 0 while it is being answered. */
  status: number;
}

/** Every part that is given must match. */
export interface RequestFilter {
  readonly verb?: Verb | readonly Verb[];
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly userAgent?: string | RegExp;
}

export interface OrderedAnswer {
  /** `cut`: the connection is broken before any answer. */
  readonly status: number | 'cut';
  readonly reason?: string;
  readonly message?: string;
  readonly retryAfterSeconds?: number;
}

export interface FakeFaults {
  readonly requests: readonly LoggedRequest[];
  count(filter?: RequestFilter): number;
  clearLog(): void;
  /** The next `times` matching requests are answered so; without `times` all are, until the returned function is called. */
  answer(filter: RequestFilter, answer: OrderedAnswer, times?: number): () => void;
  /** Matching requests wait this long first. */
  delay(filter: RequestFilter, ms: number): () => void;
  /** For the server itself. */
  note(request: LoggedRequest): void;
  meet(request: LoggedRequest): Promise<OrderedAnswer | undefined>;
}

interface Order {
  readonly filter: RequestFilter;
  readonly answer: OrderedAnswer;
  left: number;
}

export function createFakeFaults(): FakeFaults {
  let requests: LoggedRequest[] = [];
  const orders = new Set<Order>();
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
      const order = { filter, answer, left: times };
      orders.add(order);
      return () => orders.delete(order);
    },
    delay(filter, ms) {
      const delay = { filter, ms };
      delays.add(delay);
      return () => delays.delete(delay);
    },
    note: (request) => void requests.push(request),
    async meet(request) {
      for (const { filter, ms } of delays) if (matches(filter, request)) await sleep(ms, undefined, { ref: false });
      const order = [...orders].find((one) => one.left > 0 && matches(one.filter, request));
      if (order === undefined) return undefined;
      order.left -= 1;
      return order.answer;
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
