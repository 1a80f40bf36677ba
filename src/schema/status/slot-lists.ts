/** Answers of `GET /api/slots`, `/api/status` and `/api/requests`: all of them, pages, or what has changed. */
import { z } from 'zod';
import { BACKENDS } from '../slot/provider-kinds.ts';
import { CallerCounting } from '../words/caller-limits.ts';
import { ProviderName, SlotName } from '../words/names.ts';
import { HardwareSource, Slot } from './answers.ts';
import { SLOT_STATES } from './slot-status.ts';

const Count = z.int().min(0);
const Version = z.string().describe('For "since": the next answer then has only what has changed');
const Removed = z
  .array(SlotName)
  .nullable()
  .describe('Slots that are gone since "since"; null: "slots" is not a list of changes, but has all of them');

export const SlotList = z.object({
  slots: z.array(Slot),
  version: Version,
  removed: Removed,
  continue: z.string().nullable().describe('For "continue": leads to the slots after these; null: there are none'),
});

/** Names alone, if a client asks for no more. */
export const SlotPage = SlotList.extend({ slots: z.array(z.union([Slot, z.object({ name: SlotName })])) });

export const SlotLine = z.object({
  name: SlotName,
  state: z.enum(SLOT_STATES),
  model: z.string().nullable(),
  provider: ProviderName.nullable(),
  backend: z.enum(BACKENDS).nullable(),
  ready: z.boolean(),
  reason: z.string(),
  message: z.string(),
  in_flight: Count,
  parked: Count,
  progress: z.object({ done: Count, total: Count }).nullable().describe('Steps of the image that is drawn now, if the server reports them'),
  totals: z
    .object({ output_tokens: Count, first_tokens: Count, first_token_seconds: z.number().min(0) })
    .nullable()
    .describe(
      'Since this process started: output tokens, how many first tokens were timed, and the sum of their seconds; null: no requests',
    ),
});

export const Status = z.object({
  version: z.string(),
  runtime: z.string(),
  hardware_source: HardwareSource,
  auth_enabled: z.boolean(),
  uptime_seconds: Count,
  captures: Count.describe('How many captures record bodies of requests now'),
  limits: CallerCounting,
  slots: z.array(SlotLine),
  slots_version: Version,
  slots_removed: Removed,
});

const Tokens = Count.nullable();

/** What takes most of the time of a request. `api/manage/decide/explain-slow.ts` decides. */
const SLOW_CAUSES = ['fallback', 'memory', 'load', 'queue', 'prompt', 'server', 'client', 'output'] as const;
export type SlowCause = (typeof SLOW_CAUSES)[number];

const RequestEntry = z.object({
  number: Count.describe('Increases with each request'),
  id: z.string().nullable().describe('Its "X-Request-ID"'),
  at: z.iso.datetime().describe('When it ended'),
  caller: z.string().nullable().describe('"token:ID", "user:ADDRESS", "local", "wyoming" or "anyone"; null: the service itself'),
  slot: SlotName.nullable().describe('Null if it did not reach a slot'),
  route: z.string(),
  status: z.int().describe('499: the client left before the answer'),
  code: z.string().nullable().describe('The code of the error that was sent; null without one'),
  because: z
    .enum(['failed', 'slow'])
    .nullable()
    .describe('"slow": a streamed answer began after 10 s or more, or another one took at least a minute; null: neither'),
  seconds: z.number().min(0),
  first_seconds: z.number().min(0).nullable().describe('Until the answer began; null if it was not streamed'),
  parked_seconds: z.number().min(0).nullable().describe('How long it waited for its slot; null if it did not'),
  input_tokens: Tokens,
  cached_tokens: Tokens.describe('Those of "input_tokens" that the server had in its cache; null if it does not say'),
  output_tokens: Tokens.describe('Events of the stream where the server does not count; null if there were none'),
  tokens_per_second: z.number().min(0).nullable().describe('Output, from the first byte on if it was streamed'),
  why: z
    .object({ cause: z.enum(SLOW_CAUSES), message: z.string() })
    .nullable()
    .describe('What took most of its time, as far as the gateway can tell; null if nothing took a second'),
});

export const RequestEntries = z.object({
  requests: z.array(RequestEntry).describe('Those that have ended, the newest first'),
  in_flight: z
    .array(
      RequestEntry.pick({ caller: true, slot: true, route: true }).extend({
        id: z.string().describe('Its "X-Request-ID", with which it can be cancelled'),
        state: z
          .enum(['reading', 'waiting', 'computing', 'answering'])
          .describe('"waiting": for its slot; "computing": nothing was sent yet'),
        seconds: z.number().min(0).describe('Since it came'),
      }),
    )
    .describe('Those that have not, the oldest first; at most 1000'),
  last: Count.describe('For "after": the number of the newest request, also of one that the filters leave out'),
});
