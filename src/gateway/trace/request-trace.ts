/**
 * The trace of one request, where the service sends traces (`docs/traces.md`). It names the request to upstreams and
 * notes when its phases begin and end, one after the other; what becomes of that is decided when it has ended.
 */
import { randomFillSync } from 'node:crypto';
import type { Endpoint } from '../../providers/provider.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { withoutHeaders, type RequestHead } from '../upstream/decide/request-head.ts';
import { isSampled, parseTraceParent, writeTraceParent, type Sampling, type TraceParent } from './decide/trace-context.ts';

/** `auth`: the access check. `wait`: for the slot. `attempt`: with one server. */
type PhaseKind = 'auth' | 'wait' | 'attempt';

interface Phase {
  readonly kind: PhaseKind;
  readonly spanId: string;
  readonly slot: SlotName | undefined;
  readonly server: Pick<Endpoint, 'host' | 'port'> | undefined;
  /** Milliseconds since the request arrived. */
  readonly fromMs: number;
  untilMs: number;
  /** The server did not answer, so the request was sent again. */
  isLost: boolean;
}

export type TracePhase = Readonly<Phase>;

/** A request whose trace is to be sent. */
export interface TracedRequest {
  readonly traceId: string;
  readonly spanId: string;
  /** The client's span; undefined if the trace begins here. */
  readonly parentId: string | undefined;
  readonly method: string;
  /** As the client asked for it; undefined if that was not read. */
  readonly model: string | undefined;
  /** Unix milliseconds. */
  readonly at: number;
  readonly ms: number;
  readonly phases: readonly TracePhase[];
}

export type StartTrace = (head: Pick<RequestHead, 'traceparent'>) => RequestTrace;

/** A longer name is none of a slot. */
const MODEL_LENGTH = 200;
const NO_PHASES: Phase[] = [];

export class RequestTrace {
  readonly #parent: TraceParent | undefined;
  readonly #isReplaced: boolean;
  readonly #traceId: string;
  readonly #newSpanId: () => string;
  readonly #isSampled: boolean;
  readonly #at: number;
  readonly #startedAt: number;
  readonly #phases: Phase[];
  #current: Phase | undefined;

  constructor({ traceparent }: Pick<RequestHead, 'traceparent'>, sampling: Sampling, newId: (bytes: number) => string) {
    this.#parent = traceparent === undefined ? undefined : parseTraceParent(traceparent);
    this.#isReplaced = traceparent !== undefined;
    this.#traceId = this.#parent?.traceId ?? newId(16);
    this.#newSpanId = () => newId(8);
    this.#isSampled = isSampled(sampling, this.#traceId, this.#parent);
    this.#at = this.#isSampled ? Date.now() : 0;
    this.#startedAt = this.#isSampled ? performance.now() : 0;
    this.#phases = this.#isSampled ? [] : NO_PHASES;
  }

  /** The phase before it ends. */
  begin(kind: PhaseKind, slot?: SlotName, server?: Phase['server']): void {
    if (!this.#isSampled) return;
    this.end();
    const fromMs = performance.now() - this.#startedAt;
    this.#current = { kind, spanId: this.#newSpanId(), slot, server, fromMs, untilMs: fromMs, isLost: false };
    this.#phases.push(this.#current);
  }

  /** Does nothing between two phases. */
  end(isLost = false): void {
    if (this.#current === undefined) return;
    this.#current.untilMs = performance.now() - this.#startedAt;
    this.#current.isLost = isLost;
    this.#current = undefined;
  }

  /** Header lines for the upstream of the present attempt, from those of the client. */
  linesFor(lines: string): string {
    const spanId = this.#current?.spanId ?? (this.#isSampled ? undefined : this.#parent?.spanId) ?? this.#newSpanId();
    const own = `traceparent: ${writeTraceParent({ traceId: this.#traceId, spanId, isSampled: this.#isSampled })}\r\n`;
    // The state belongs to the parent that it came with.
    const others = this.#isReplaced ? withoutHeaders(lines, ['traceparent', ...(this.#parent === undefined ? ['tracestate'] : [])]) : lines;
    return `${others}${own}`;
  }

  /** Undefined if the trace is not sent. Call this once. */
  finish(method = 'POST', model?: string): TracedRequest | undefined {
    if (!this.#isSampled) return undefined;
    this.end();
    return {
      traceId: this.#traceId,
      spanId: this.#newSpanId(),
      parentId: this.#parent?.spanId,
      method,
      model: model?.slice(0, MODEL_LENGTH),
      at: this.#at,
      ms: performance.now() - this.#startedAt,
      phases: this.#phases,
    };
  }
}

/** Random bytes for many ids, because asking for them each time costs more than the rest of an id. */
const POOL_BYTES = 4096;

/** Returns ids of so many bytes, as hexadecimal digits. */
export function createTraceIds(): (bytes: number) => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  return (bytes) => {
    if (used + bytes > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    used += bytes;
    return pool.toString('hex', used - bytes, used);
  };
}

/** `sampling` undefined: nothing is traced. */
export function createTracer(sampling: Sampling | undefined, newId = createTraceIds()): StartTrace | undefined {
  return sampling && ((head) => new RequestTrace(head, sampling, newId));
}
