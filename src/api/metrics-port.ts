/** What the request path reports. In-flight and parked counts are not reported: a scrape reads them from `Traffic.read()`. */

export interface FinishedRequest {
  /** Undefined when the request never came to a slot. */
  readonly slot: string | undefined;
  /** The route's pattern, never the raw path, so that the number of series is bounded. */
  readonly route: string;
  readonly method: string;
  /** HTTP status sent; 499 when the client left before one was. */
  readonly status: number;
  readonly seconds: number;
  /** From the request's arrival to the first byte of the upstream's body. */
  readonly ttftSeconds?: number | undefined;
  readonly tokens?: { readonly input: number; readonly output: number } | undefined;
}

export interface RequestMetrics {
  /** Called exactly once a request, on the hot path: must not throw and must not allocate much. */
  requestFinished(request: FinishedRequest): void;
}

export const NO_METRICS: RequestMetrics = { requestFinished: () => undefined };
