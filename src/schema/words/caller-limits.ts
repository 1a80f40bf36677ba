/** What a caller may use, and its share where requests wait: keys of a token, or of a table for callers without one. */
import { z } from 'zod';
import { HIGHEST_WEIGHT, PRIORITIES } from './access.ts';

const count = (most: number, what: string) => z.int().min(1).max(most).optional().describe(what);

/** Keys that are absent limit nothing. */
export const CALLER_LIMITS = {
  models: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(500)
    .optional()
    .describe('Slots, with all of their names, and model ids and aliases, each for itself. Default: all'),
  requests_per_minute: count(1_000_000, 'Requests in any minute'),
  tokens_per_minute: count(1_000_000_000, 'Tokens of prompts and answers in any minute'),
  tokens_per_day: count(1_000_000_000_000, 'Tokens of prompts and answers in any 24 hours'),
  max_in_flight: count(10_000, 'Requests at the same time, also those that wait'),
  max_output_tokens: count(10_000_000, 'Tokens of one answer; requests that ask for more, or for no number, get this one'),
  weight: count(HIGHEST_WEIGHT, 'Share of a model for which requests wait, compared with other callers. Default: 1'),
  priority: z.enum(PRIORITIES).optional().describe('Whose requests are served first where requests wait. Default: "normal"'),
};

export const CallerLimits = z.strictObject(CALLER_LIMITS);
export type CallerLimits = Readonly<z.output<typeof CallerLimits>>;

/** The limits among the keys of a token; undefined if there are none. */
export function limitsOf(row: object): CallerLimits | undefined {
  const entries = Object.keys(CALLER_LIMITS).flatMap((key) => {
    const value: unknown = Reflect.get(row, key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return entries.length === 0 ? undefined : CallerLimits.parse(Object.fromEntries(entries));
}

/** Who sends a request, as far as the gateway needs to know. */
export interface RequestCaller {
  /** `auth/decide/decide-access.ts` lists the forms. */
  readonly key: string;
  readonly limits?: CallerLimits | undefined;
}

/** How the limits of callers are counted, as `/api/status` says it. */
export const CallerCounting = z.object({
  shared: z.boolean().describe('All gateways count callers together, in the server of "SVC_LIMITS_URL"'),
  gateways: z.int().min(0).describe('Gateways that are known. While they do not count together, each enforces its part of each limit'),
  problem: z.string().nullable().describe('Why they do not, though "SVC_LIMITS_URL" is set'),
});
export type CallerCounting = z.output<typeof CallerCounting>;
