/** Sends traces where `OTEL_EXPORTER_OTLP_ENDPOINT` says so; otherwise nothing of OpenTelemetry is loaded. */
import { reportTo } from '../api/manage/request-record.ts';
import type { StatusSink } from '../reconciler/ports.ts';
import type { LoopMetrics } from '../reconciler/loop.ts';
import type { Board } from '../reconciler/board.ts';
import type { ReportRequest } from '../gateway/exchange-deps.ts';
import { parseSampling, type Sampling } from '../gateway/trace/decide/trace-context.ts';
import { createTraceIds } from '../gateway/trace/request-trace.ts';
import type { Readable } from '../schema/words/failure.ts';
import type { SlotName } from '../schema/words/names.ts';
import { requestSpans, type RequestFacts } from '../traces/decide/request-spans.ts';
import { createLoadSpans } from '../traces/load-spans.ts';
import { openSpanExporter } from '../traces/span-exporter.ts';
import type { ServiceOptions, World } from './world.ts';

const PROTOCOL = 'http/protobuf';

export interface Traces {
  readonly sampling: Sampling;
  readonly note: ReportRequest;
  /** What the reconciler reports to. */
  readonly sinks: readonly StatusSink[];
  /** Returns metrics by which passes are traced as well. */
  watch<Metrics extends Pick<LoopMetrics, 'passFinished'>>(metrics: Metrics): Metrics;
  /** Sends what is left. */
  close(): Promise<void>;
}

type TracesDeps = Pick<ServiceOptions, 'env' | 'version' | 'log'> & { readonly leadership: Pick<World['leadership'], 'leads'> };

/** Undefined: nothing is traced. What is wrong with the variables is logged, and then nothing is traced either. */
export async function startTraces(
  { env, version, log, leadership }: TracesDeps,
  board: Pick<Board, 'current'>,
): Promise<Traces | undefined> {
  const wanted = readWanted(env);
  if (wanted === undefined) return undefined;
  if (!wanted.ok) {
    log.warn({}, `No traces are sent: ${wanted.problem}`);
    return undefined;
  }
  const { sampling } = wanted;
  const exporter = await openSpanExporter({ env, version, log, now: () => performance.now() });
  const newId = createTraceIds();
  const slots = (name: SlotName): ReturnType<RequestFacts['slots']> => {
    const slot = board.current().slots.get(name);
    return slot && { model: slot.status.model, provider: slot.spec.provider };
  };
  const loads = createLoadSpans({
    newId,
    wallNow: () => Date.now(),
    leads: () => leadership.leads(),
    modelOf: (name) => slots(name)?.model,
    send: sampling.isParentBased || sampling.ratio > 0 ? exporter.send : () => undefined,
  });
  log.info({ ratio: sampling.ratio }, 'Traces are sent over OTLP');
  return {
    sampling,
    note(finished) {
      const { trace } = finished;
      if (trace === undefined) return;
      const hasWaited = trace.phases.some(({ kind }) => kind === 'wait');
      exporter.send(requestSpans(finished, trace, { loads: hasWaited ? loads.since(trace.at) : [], slots, newSpanId: () => newId(8) }));
    },
    sinks: [loads.sink],
    watch: (metrics) => ({ ...metrics, passFinished: reportTo(metrics.passFinished, loads.passFinished) }),
    close: exporter.close,
  };
}

/** The packages would do without a value that they do not understand, and send to a collector on this machine. */
function readWanted(env: ServiceOptions['env']): Readable<{ readonly sampling: Sampling }> | undefined {
  const valueOf = (...names: readonly string[]): string | undefined => names.map((name) => env[name]?.trim()).find(Boolean);
  const endpoint = valueOf('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT');
  const isOff = valueOf('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || valueOf('OTEL_TRACES_EXPORTER') === 'none';
  if (endpoint === undefined || isOff) return undefined;
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    return { ok: false, problem: 'set "OTEL_EXPORTER_OTLP_ENDPOINT" to an "http" or "https" URL' };
  const protocol = valueOf('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL') ?? PROTOCOL;
  if (protocol !== PROTOCOL)
    return { ok: false, problem: `set "OTEL_EXPORTER_OTLP_PROTOCOL" to "${PROTOCOL}", for which most collectors listen on port 4318` };
  const sampling = parseSampling(valueOf('OTEL_TRACES_SAMPLER'), valueOf('OTEL_TRACES_SAMPLER_ARG'));
  if (sampling !== undefined) return { ok: true, sampling };
  return {
    ok: false,
    problem: 'set "OTEL_TRACES_SAMPLER" to "parentbased_traceidratio", for example, and its argument to a number from 0 to 1',
  };
}
