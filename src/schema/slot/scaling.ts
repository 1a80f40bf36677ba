/** How many requests a slot takes, what they cost, how many pods of a cluster serve them, and how edits take effect. */
import { z } from 'zod';
import { parseDurationMs } from '../words/quantities.ts';
import { durationWithin } from '../words/quantity-schemas.ts';
import { optional } from '../pod/kube-fields.ts';
import { rulesAt } from './slot-rules.ts';

export const Autoscale = z
  .strictObject({
    min: z.int().min(0).max(1000).default(1).describe('Least number of pods. 0 needs "load" set to "on-demand"'),
    max: z.int().min(1).max(1000).describe('Largest number of pods'),
    target: z
      .strictObject({ inFlight: z.int().min(1).max(10_000).describe('Requests for each pod, in flight or waiting') })
      .describe('Load of a pod that the service aims at'),
    window: durationWithin('0s', '1h')
      .default('5m')
      .describe('Time for which fewer pods must have been enough before pods are removed. More are added at once'),
  })
  .superRefine(rulesAt('autoscale'));

export const Limits = z.strictObject({
  maxInFlight: optional(
    'Requests at the same time, on all servers of the slot together. Others wait, and callers take turns. Default: no limit',
    z.int().min(1).max(100_000),
  ),
  maxQueue: optional('Requests that may wait for the slot. Default: "SVC_PARK_LIMIT"', z.int().min(0).max(100_000)),
});

/** More is a mistake in the unit. It keeps sums of a million requests within what numbers can hold. */
const MOST = 10_000;

const price = (meaning: string) => optional(meaning, z.number().min(0).max(MOST));

export const PriceTable = z.strictObject({
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'Write the code of a currency, such as "EUR"')
    .describe('Code of the currency, such as "EUR". Sums of different currencies are never added up'),
  promptTokens: price('Price of a million tokens of prompts. Default: none'),
  cachedTokens: price('Price of a million tokens of prompts that the server had computed before. Default: "promptTokens"'),
  outputTokens: price('Price of a million tokens of answers. Default: none'),
  image: price('Price of an image. Default: none'),
  audioMinute: price('Price of a minute of sound, heard or spoken. Default: none'),
});

export type Price = Readonly<z.output<typeof PriceTable>>;

export const Rollout = z.strictObject({
  paused: z
    .boolean()
    .default(false)
    .describe(
      'Whether edits of the slot wait: what is in force stays so and is repaired, until this is false again. Set by "svcctl rollout pause" and "resume"',
    ),
});

export function resolveAutoscale({ min, max, target, window }: z.output<typeof Autoscale>) {
  return { min, max, inFlight: target.inFlight, windowMs: parseDurationMs(window) };
}
