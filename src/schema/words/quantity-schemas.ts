/** The schemas of durations and sizes, with their limits. */
import { z } from 'zod';
import {
  DURATION_PATTERN,
  DURATION_RULE,
  limitsRule,
  parseDurationMs,
  parseSizeBytes,
  QUANTITY_LENGTH,
  SIZE_PATTERN,
  SIZE_RULE,
  type Limits,
} from './quantities.ts';

const Duration = z.string().max(QUANTITY_LENGTH, DURATION_RULE).regex(new RegExp(DURATION_PATTERN), DURATION_RULE);

const Size = z.string().max(QUANTITY_LENGTH, SIZE_RULE).regex(new RegExp(SIZE_PATTERN), SIZE_RULE);

/** A duration within limits, such as "1s" and "24h". */
export function durationWithin(least: string, most: string) {
  return Duration.refine(isWithin(parseDurationMs, { least, most }), { error: outside('duration', { least, most }) }).meta({ least, most });
}

/** A size within limits, such as "1Mi" and "1024Ti". */
export function sizeWithin(least: string, most: string) {
  return Size.refine(isWithin(parseSizeBytes, { least, most }), { error: outside('size', { least, most }) }).meta({ least, most });
}

function isWithin(parse: (text: string) => number, { least, most }: Limits): (text: string) => boolean {
  // A text in another form has a problem of its own.
  return (text) => !(parse(text) < parse(least) || parse(text) > parse(most));
}

function outside(what: string, limits: Limits): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => `${limitsRule(what, limits)}, not "${String(input)}"`;
}
