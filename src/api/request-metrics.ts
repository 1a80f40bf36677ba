/** The metrics port of the request path. In-flight and parked requests are not reported here; they are read when Prometheus scrapes. */

export interface FinishedRequest {
  /** Undefined if the request did not reach a slot. */
  readonly slot: string | undefined;
  /** The route's pattern, never the raw path, so that the number of series is bounded. */
  readonly route: string;
  /** HTTP status sent; 499 if the client disconnected before that. */
  readonly status: number;
  readonly seconds: number;
  /** From the request's arrival to the first byte of the upstream's body. */
  readonly ttftSeconds?: number | undefined;
  readonly tokens?: { readonly input: number; readonly output: number } | undefined;
}

export interface RequestMetrics {
  /** Called exactly once per request on the hot path: must not throw and must not allocate much. */
  requestFinished(request: FinishedRequest): void;
}

export const NO_METRICS: RequestMetrics = { requestFinished: () => undefined };
