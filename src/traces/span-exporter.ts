/**
 * Sends spans over OTLP with the packages of OpenTelemetry, which are loaded here and nowhere else. Spans wait in a
 * queue of bounded length; what does not fit is dropped, and so is all for a while after a failure.
 */
import { hostname } from 'node:os';
import type { Attributes, HrTime, SpanContext } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import { sleep } from '../platform/clock.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import type { SpanFacts } from './decide/request-spans.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface SpanExporterDeps {
  /** Besides, the packages read `OTEL_EXPORTER_OTLP_*` and `OTEL_RESOURCE_ATTRIBUTES` of the process themselves. */
  readonly env: Env;
  readonly version: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: SourceLog;
}

const KINDS = { internal: 0, server: 1, client: 2 } as const;
const IS_SAMPLED = 1;
const FAILED = 2;
const UNSET = 0;
/** How long a stopping service waits for a collector. */
const CLOSE_MS = 2000;
const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 300_000;

export async function openSpanExporter(deps: SpanExporterDeps) {
  const [{ BatchSpanProcessor }, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
    import('@opentelemetry/resources'),
  ]);
  const { env, version } = deps;
  const { defaultResource, detectResources, resourceAttributesEnvDetector, resourceFromAttributes, serviceNameEnvDetector } = resources;
  const own = resourceFromAttributes({ 'service.name': 'svc', 'service.version': version, 'host.name': hostname() });
  const resource = defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }));
  const scope = { name: 'svc', version };
  const processor = new BatchSpanProcessor({
    exporter: pausing(new OTLPTraceExporter(), deps),
    ...limitsOf(env),
  });
  return {
    send(spans: readonly SpanFacts[]): void {
      for (const span of spans) processor.onEnd({ ...readable(span), resource, instrumentationScope: scope });
    },
    async close(): Promise<void> {
      await Promise.race([processor.shutdown().catch(() => undefined), sleep(CLOSE_MS, AbortSignal.timeout(CLOSE_MS))]);
    },
  };
}

/** https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#batch-span-processor */
function limitsOf(env: Env) {
  const numberOf = (name: string): number | undefined => {
    const value = Number(env[name]);
    return Number.isInteger(value) && value > 0 ? value : undefined;
  };
  const limits = {
    scheduledDelayMillis: numberOf('OTEL_BSP_SCHEDULE_DELAY'),
    exportTimeoutMillis: numberOf('OTEL_BSP_EXPORT_TIMEOUT'),
    maxQueueSize: numberOf('OTEL_BSP_MAX_QUEUE_SIZE'),
    maxExportBatchSize: numberOf('OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** One line when traces cannot be sent any more, and one when they can again. */
function pausing(exporter: SpanExporter, { now, log }: Pick<SpanExporterDeps, 'now' | 'log'>): SpanExporter {
  let failures = 0;
  let lost = 0;
  let pausedUntil = 0;
  const noteResult = (spans: number, error: Error | undefined): void => {
    if (error === undefined) {
      if (failures > 0) log.info({ lost }, 'Traces are sent again');
      failures = 0;
      lost = 0;
      return;
    }
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
    if (failures === 0)
      log.warn({}, `Traces cannot be sent, and are dropped meanwhile: check "OTEL_EXPORTER_OTLP_ENDPOINT" (${messageOf(error)})`);
    lost += spans;
    failures += 1;
    pausedUntil = now() + pauseMs;
  };
  return {
    export(spans, done) {
      if (now() < pausedUntil) {
        lost += spans.length;
        return done({ code: 0 });
      }
      exporter.export(spans, ({ code, error }) => {
        noteResult(spans.length, code === 0 ? undefined : (error ?? new Error('no reason')));
        done({ code: 0 });
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: async () => exporter.shutdown(),
  };
}

function readable(span: SpanFacts): Omit<ReadableSpan, 'resource' | 'instrumentationScope'> {
  const { name, kind, traceId, spanId, parentId, from, until, links = [], error } = span;
  const contextOf = (id: string, trace = traceId): SpanContext => ({ traceId: trace, spanId: id, traceFlags: IS_SAMPLED });
  const own = contextOf(spanId);
  const all = Object.entries({ ...span.attributes, 'error.type': error });
  const attributes: Attributes = Object.fromEntries(all.filter(([, value]) => value !== undefined));
  return {
    name,
    kind: KINDS[kind],
    spanContext: () => own,
    ...(parentId === undefined ? {} : { parentSpanContext: { ...contextOf(parentId), isRemote: kind === 'server' } }),
    startTime: timeOf(from),
    endTime: timeOf(until),
    duration: timeOf(until - from),
    status: { code: error === undefined ? UNSET : FAILED },
    attributes,
    links: links.map((link) => ({ context: contextOf(link.spanId, link.traceId) })),
    events: [],
    ended: true,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Seconds and nanoseconds. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.floor((ms - seconds * 1000) * 1e6)];
}
