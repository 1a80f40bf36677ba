/** Reads what `wrk --latency` prints. Pure. */

export interface WrkReport {
  /** Answers that arrived whole, also those with an error's status. */
  readonly requests: number;
  /** Answers that were not 2xx or 3xx, and connections that were refused, broken or too slow. */
  readonly failures: number;
  readonly seconds: number;
  readonly medianUs: number;
}

/** The units in which wrk prints a duration. */
const US: Readonly<Record<string, number>> = { us: 1, ms: 1e3, s: 1e6, m: 60e6, h: 3600e6 };

/** Throws if the text is not that of wrk. */
export function parseWrk(text: string): WrkReport {
  const [, requests, lasted, lastedUnit = ''] = /(\d+) requests in ([\d.]+)(us|ms|s|m|h),/.exec(text) ?? [];
  const [, half, halfUnit = ''] = /\n\s*50%\s+([\d.]+)(us|ms|s|m|h)\n/.exec(text) ?? [];
  if (requests === undefined) throw new Error(`Read the result of wrk: it printed "${text}"`);
  return {
    requests: Number(requests),
    failures: failuresIn(text),
    seconds: (Number(lasted) * (US[lastedUnit] ?? Number.NaN)) / 1e6,
    medianUs: Number(half) * (US[halfUnit] ?? Number.NaN),
  };
}

function failuresIn(text: string): number {
  const [, answers = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(text) ?? [];
  const [, ...broken] = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text) ?? [];
  return [answers, ...broken].reduce((sum, count) => sum + Number(count), 0);
}
