/** Answers of `GET /api/slots` and `GET /api/status`: all slots, pages of them, or what has changed. */
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
