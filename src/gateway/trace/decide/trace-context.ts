/** `traceparent` and the decision whether a request is traced. https://www.w3.org/TR/trace-context/. Pure. */

export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

const PARENT = /^([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Undefined if it is missing or malformed: a trace then begins here. Later versions may have more fields. */
export function parseTraceParent(text: string | undefined): TraceParent | undefined {
  const [, version, traceId, spanId, flags = '', more] = PARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const writeTraceParent = ({ traceId, spanId, isSampled }: TraceParent): string => `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;

export interface Sampling {
  /** What a client has decided holds for its request. */
  readonly isParentBased: boolean;
  /** Share of the other traces, from 0 to 1. */
  readonly ratio: number;
}

const RATIOS: Readonly<Record<string, number | undefined>> = { always_on: 1, always_off: 0, traceidratio: undefined };

/**
 * `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. Undefined if they mean nothing.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function parseSampling(name = 'parentbased_always_on', argument = '1'): Sampling | undefined {
  const [, parent, kind = ''] = /^(parentbased_)?(\w+)$/.exec(name) ?? [];
  if (!(kind in RATIOS)) return undefined;
  const ratio = RATIOS[kind] ?? Number(argument);
  return ratio >= 0 && ratio <= 1 ? { isParentBased: parent !== undefined, ratio } : undefined;
}

const RANDOM_VALUES = 2 ** 56;

/** All services of a trace come to the same decision, because only its id counts. */
export function isSampled({ isParentBased, ratio }: Sampling, traceId: string, parent: TraceParent | undefined): boolean {
  if (isParentBased && parent !== undefined) return parent.isSampled;
  return ratio === 1 || (ratio > 0 && Number.parseInt(traceId.slice(-14), 16) >= (1 - ratio) * RANDOM_VALUES);
}
