/** How many requests a slot takes, what they cost, how many pods of a cluster serve them, and how edits take effect. */
import { z } from 'zod';
import { parseDurationMs } from '../words/quantities.ts';
import { durationWithin } from '../words/quantity-schemas.ts';
import { optional } from '../pod/kube-fields.ts';
import { evaluationCaseSchema } from './evaluation-case.ts';
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

/** Names below the directory, so that no other file can be read. */
const CHECK_PATH = /^(?:[^/.\0][^/\0]*|\.[^/.\0][^/\0]*|\.\.[^/\0]+)(?:\/(?:[^/.\0][^/\0]*|\.[^/.\0][^/\0]*|\.\.[^/\0]+))*$/;
/** Whether a path leads below the configuration directory. */
export const isConfigPath = (path: string): boolean => CHECK_PATH.test(path);

/** More of them belong into a file. */
const MOST_CASES = 50;

export const Rollout = z
  .strictObject({
    paused: z
      .boolean()
      .default(false)
      .describe(
        'Whether edits of the slot wait: what is in force stays so and is repaired, until this is false again. Set by "svcctl rollout pause" and "resume"',
      ),
    check: optional(
      'File of cases, relative to the configuration directory, that a new model must answer before it gets requests. In a cluster, the name of a ConfigMap with the label "inference.svc.dev/checks", and its key',
      z.string().max(300).regex(CHECK_PATH, 'Write a path below the configuration directory, such as "checks/golden.jsonl"'),
    ),
    cases: optional('The same cases, as a list in place', z.array(evaluationCaseSchema).min(1).max(MOST_CASES)),
    pass: optional('Least share of the cases that must pass. Default: 1', z.number().min(0).max(1)),
    compare: optional('Whether the old model answers the cases too, and the new one must not be worse. Default: false', z.boolean()),
    tolerance: optional(
      'By how much the share of the new model may be lower than that of the old one. Default: 0',
      z.number().min(0).max(1),
    ),
    limits: optional(
      'How fast the new model must answer the cases',
      z.strictObject({
        firstTokenP95: optional('Longest time to the first token, of 95 % of the answers', durationWithin('1ms', '10m')),
        tokensPerSecond: optional('Least number of tokens in a second', z.number().min(0).max(1_000_000)),
      }),
    ),
    watch: optional(
      'How long a new model is watched from its first answer on. If its server crashes, computes nonsense or fails requests meanwhile, the text before is in force again',
      durationWithin('1s', '7d'),
    ),
    onFailure: optional(
      'What happens to a model that fails. "revert": the text that was accepted last is in force again; "hold": the new model stays loaded without requests while the old one serves, and as "revert" where none does. Default: "revert"',
      z.enum(['revert', 'hold']),
    ),
  })
  .superRefine(rulesAt('rollout'));

export type RolloutSpec = Readonly<z.output<typeof Rollout>>;

/** Whether cases judge a new model of the slot. */
export const hasChecks = (rollout: RolloutSpec | undefined): boolean => rollout?.check !== undefined || rollout?.cases !== undefined;

/** Whether the text before comes back where a new model fails. */
export const canRollBack = (rollout: RolloutSpec | undefined): boolean => hasChecks(rollout) || rollout?.watch !== undefined;

export function resolveAutoscale({ min, max, target, window }: z.output<typeof Autoscale>) {
  return { min, max, inFlight: target.inFlight, windowMs: parseDurationMs(window) };
}
