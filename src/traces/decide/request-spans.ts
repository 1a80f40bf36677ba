/**
 * The spans of a request that has ended, by OpenTelemetry's conventions for HTTP servers and GenAI clients
 * (`docs/traces.md`). Pure.
 *
 *   POST /v1/chat/completions ─┬─ auth
 *                              ├─ wait ── load   linked to what was loaded meanwhile
 *                              └─ chat <model>   one for each server that was asked
 */
import type { FinishedRequest } from '../../gateway/exchange-deps.ts';
import { INFERENCE_PATHS, NATIVE_PATHS } from '../../gateway/route/decide/inference-paths.ts';
import type { TracedRequest, TracePhase } from '../../gateway/trace/request-trace.ts';
import type { Capability } from '../../schema/slot/provider-kinds.ts';
import type { SlotName } from '../../schema/words/names.ts';

export interface SpanRef {
  readonly traceId: string;
  readonly spanId: string;
}

export interface SpanFacts extends SpanRef {
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly parentId?: string | undefined;
  /** Unix milliseconds, with fractions. */
  readonly from: number;
  readonly until: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  readonly links?: readonly SpanRef[];
  /** `error.type`. Undefined: no error. */
  readonly error?: string | undefined;
}

/** A load of a slot while a request waited. `until` undefined: it goes on. */
export interface LoadFacts {
  readonly slot: SlotName;
  readonly from: number;
  readonly until: number | undefined;
  /** The load itself, its parts and the pass that began it. Empty where another replica traces them. */
  readonly refs: readonly SpanRef[];
}

export interface RequestFacts {
  readonly loads: readonly LoadFacts[];
  readonly slots: (name: SlotName) => { readonly model: string; readonly provider: string } | undefined;
  readonly newSpanId: () => string;
}

/** Where the conventions have no name, it is the capability. */
const OPERATIONS: Partial<Record<Capability, string>> = { completion: 'text_completion', embedding: 'embeddings' };
const CAPABILITIES = new Map([...INFERENCE_PATHS, ...NATIVE_PATHS].map(({ path, capability }) => [path, capability]));
const SERVER_ERROR = 500;
const CLIENT_ERROR = 400;

export function requestSpans(finished: FinishedRequest, trace: TracedRequest, facts: RequestFacts): readonly SpanFacts[] {
  const { traceId, spanId, parentId, method, at, ms, phases } = trace;
  const { route, status, slot, requestId, caller } = finished;
  const request: SpanFacts = {
    name: `${method} ${route}`,
    kind: 'server',
    traceId,
    spanId,
    parentId,
    from: at,
    until: at + ms,
    error: status >= SERVER_ERROR ? problemOf(finished) : undefined,
    attributes: {
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'svc.slot': slot,
      'svc.request.id': requestId,
      'svc.caller': caller,
    },
  };
  const last = phases.findLast(({ kind }) => kind === 'attempt');
  return [
    request,
    ...phases.flatMap((phase) => {
      const base = { traceId, spanId: phase.spanId, parentId: spanId, from: at + phase.fromMs, until: at + phase.untilMs };
      if (phase.kind === 'attempt') return { ...base, ...attemptSpan(phase, trace, phase === last ? finished : { route }, facts) };
      const span: SpanFacts = { ...base, name: phase.kind, kind: 'internal', attributes: { 'svc.slot': phase.slot } };
      return phase.kind === 'wait' ? [span, ...loadSpans(span, phase.slot, facts)] : span;
    }),
  ];
}

/** `finished`: only the route, unless the attempt was the last one. */
function attemptSpan(
  { slot, server, isLost, fromMs }: TracePhase,
  { model, phases: [first] }: TracedRequest,
  finished: Pick<FinishedRequest, 'route'> & Partial<FinishedRequest>,
  { slots }: RequestFacts,
): Pick<SpanFacts, 'name' | 'kind' | 'attributes' | 'error'> {
  const { route, status = 0, tokens, ttftSeconds } = finished;
  const capability = CAPABILITIES.get(route) ?? 'completion';
  const operation = OPERATIONS[capability] ?? capability;
  const known = slot && slots(slot);
  // Times of the request begin after its access check.
  const checkedMs = first?.kind === 'auth' ? first.untilMs : 0;
  const counted = tokens?.isEstimated === true ? undefined : tokens;
  const answered = status >= CLIENT_ERROR ? problemOf({ status, ...finished }) : undefined;
  return {
    name: model === undefined ? operation : `${operation} ${model}`,
    kind: 'client',
    error: isLost ? 'upstream.lost' : answered,
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': known?.provider ?? 'unknown',
      'gen_ai.request.model': model,
      'gen_ai.response.model': isLost ? undefined : known?.model,
      'gen_ai.usage.input_tokens': counted?.input,
      'gen_ai.usage.output_tokens': counted?.output,
      'gen_ai.usage.cache_read.input_tokens': counted?.cached,
      'gen_ai.response.time_to_first_chunk': ttftSeconds === undefined ? undefined : Math.max(0, ttftSeconds - (fromMs - checkedMs) / 1000),
      'server.address': server?.host,
      'server.port': server?.port,
      'svc.slot': slot,
    },
  };
}

function loadSpans({ traceId, spanId, from, until }: SpanFacts, slot: SlotName | undefined, facts: RequestFacts): readonly SpanFacts[] {
  return facts.loads.flatMap((load) => {
    const during = { from: Math.max(from, load.from), until: Math.min(until, load.until ?? until) };
    if (load.slot !== slot || during.until < during.from) return [];
    const attributes = { 'svc.slot': slot };
    return {
      name: 'load',
      kind: 'internal',
      traceId,
      spanId: facts.newSpanId(),
      parentId: spanId,
      ...during,
      attributes,
      links: load.refs,
    };
  });
}

const problemOf = ({ code, status }: Pick<FinishedRequest, 'code' | 'status'>): string => code ?? String(status);
