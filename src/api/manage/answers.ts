/** The answers of `/api` as schemas: the source of the OpenAPI document and of the types that handlers return. Keys are in snake_case; unknown values are null. */
import { z } from 'zod';
import { SlotName } from '../../schema/names.ts';
import { BACKENDS, CAPABILITIES, PROVIDER_KIND_NAMES } from '../../schema/provider-kinds.ts';
import { CONDITION_TYPES, SLOT_STATES, TIMELINE_KINDS } from '../../schema/slot-status.ts';

const Count = z.int().min(0);
const Bytes = z.number().min(0);
/** ISO 8601, UTC. */
const Time = z.iso.datetime();
const State = z.enum(SLOT_STATES);
const Provider = z.enum(PROVIDER_KIND_NAMES);
const Backend = z.enum(BACKENDS);

export const Condition = z.object({
  type: z.enum(CONDITION_TYPES),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().describe('A word in CamelCase; the conditions page of the reference lists all'),
  message: z.string(),
  last_transition_at: Time.nullable(),
  observed_generation: z.int(),
});

export const Progress = z.object({
  what: z.string().describe('The file or image that is being downloaded'),
  done_bytes: Bytes,
  total_bytes: Bytes.nullable(),
  bytes_per_second: z.number().min(0).nullable().describe('Over the last seconds; null if not known'),
  seconds_left: Count.nullable().describe('At this speed; null if not known'),
});

export const Problem = z.object({
  key: z.string().describe('The invalid key of the document, with dots between its parts'),
  message: z.string(),
  file: z.string().nullable(),
  line: Count.nullable(),
  column: Count.nullable(),
});

export const SlotStatus = z.object({
  state: State,
  conditions: z.array(Condition),
  observed_generation: z.int(),
  provider: Provider.nullable(),
  backend: Backend.nullable(),
  model: z.string().nullable().describe('The model that answers now; while none does, the model in the document'),
  wanted_model: z.string().nullable(),
  capabilities: z.array(z.enum(CAPABILITIES)),
  endpoint: z.string().nullable(),
  memory_bytes: Bytes.nullable(),
  restarts: Count,
  replicas: z.object({ present: Count, ready: Count }).nullable(),
  since: Time.nullable(),
  progress: Progress.nullable(),
  problems: z.array(Problem),
});

export const Slot = z.object({
  name: SlotName,
  spec: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('The stored document; null if there is none, or if its text cannot be parsed'),
  status: SlotStatus,
  generation: Count,
  resource_version: z.string().nullable().describe('For "If-Match"; null if the slot has no document'),
});

export const SlotList = z.object({ slots: z.array(Slot) });

export const SlotLine = z.object({
  name: SlotName,
  state: State,
  model: z.string().nullable(),
  provider: Provider.nullable(),
  backend: Backend.nullable(),
  ready: z.boolean(),
  reason: z.string(),
  message: z.string(),
  in_flight: Count,
  parked: Count,
});

export const Status = z.object({
  version: z.string(),
  runtime: z.string(),
  auth_enabled: z.boolean(),
  uptime_seconds: Count,
  slots: z.array(SlotLine),
});

export const TimelineEntry = z.object({
  seq: Count.describe('Continues after a restart; the id of the entry in "/api/events"'),
  at: Time.nullable(),
  slot: SlotName,
  kind: z.enum(TIMELINE_KINDS),
  message: z.string(),
  cause: z.string().nullable(),
  from: State.nullable(),
  to: State.nullable(),
});

export const Timeline = z.object({ entries: z.array(TimelineEntry) });

export const FitAnswer = z.object({
  model: z.string(),
  message: z.string().describe('The answer in words'),
  backend: Backend,
  fits: z.boolean().describe('It fits beside other programs, if other slots give way'),
  fits_now: z.boolean().describe('It fits beside everything that slots have now'),
  needed_bytes: Bytes,
  placement: z.array(z.object({ memory: z.string(), bytes: Bytes })).describe('What it needs, by where it would be'),
  room_bytes: Bytes.nullable().describe('What there is for slots in the memory that decides; null without a limit'),
  context: z.int().nullable().describe('As asked for; null: that of the model'),
  largest_context: z.int().nullable().describe('The largest context with which it fits; null if it fits anyway, or with none'),
  exact: z.boolean().describe('Whether the model was read; otherwise only its size is known'),
  quantisations: z
    .array(z.object({ name: z.string(), size_bytes: Bytes, needed_bytes: Bytes, fits: z.boolean() }))
    .describe('What the repository of the model offers, the largest first, if its name does not say which one'),
});

const MemoryPart = z.object({ memory: z.string().describe('"host", or the id of a device'), bytes: Bytes });

export const MemoryShare = z
  .object({
    admitted: z.boolean(),
    may_wait: z.boolean().describe('Not admitted, but the memory will be released automatically'),
    placement: z.array(MemoryPart).describe('What the slot needs, by where it is or would be'),
    short: MemoryPart.extend({ budget_bytes: Bytes, promised_bytes: Bytes, others_bytes: Bytes })
      .nullable()
      .describe('The memory that decides, with what slots before this one get and what other programs use; null without a budget'),
    candidates: z
      .array(
        z.object({
          slot: SlotName,
          bytes: Bytes,
          priority: z.int(),
          running: z.boolean(),
          admitted: z.boolean(),
          because: z
            .enum(['always', 'loading', 'turn', 'overdue', 'waiting', 'served', 'idle', 'unloaded'])
            .describe('What gives the slot its place'),
        }),
      )
      .describe('The slots that share the memory, if it is short: at most ten without memory, and ten with it, in order'),
  })
  .describe('How memory was shared out, as far as the slot is concerned');

export const Explanation = z.object({
  name: SlotName,
  text: z.string(),
  problems: z.array(z.string()),
  memory: MemoryShare.nullable().describe('Null if the slot needs no memory now'),
});

export const Plan = z.object({
  text: z.string(),
  changes: z.array(z.object({ slot: SlotName, action: z.string(), because: z.string(), message: z.string() })),
});

export const Applied = z.object({
  dry_run: z.boolean(),
  slots: z.array(z.object({ name: SlotName, result: z.enum(['created', 'updated', 'unchanged', 'deleted']) })),
});

export const ModelEntry = z.object({
  id: z.string(),
  provider: z.string(),
  family: z.string(),
  present: z.boolean(),
  size_bytes: Bytes.nullable(),
  memory_bytes: Bytes.nullable(),
  min_vram_bytes: Bytes.nullable(),
  license: z.string().nullable(),
  license_url: z.string().nullable(),
  selectable: z.boolean(),
  reason: z.string().nullable().describe('Why the model cannot be selected'),
});

export const Models = z.object({ models: z.array(ModelEntry) });

export const Pulls = z.object({
  pulls: z.array(
    Progress.extend({
      slot: SlotName.nullable().describe('The slot that waits for the download; null if somebody asked for the model itself'),
      model: z.string().nullable().describe('Null for the download of an image'),
      failed: z
        .boolean()
        .describe('The download has ended without success; it stays listed until it is asked for again or the model is removed'),
      message: z.string().describe('Why it has failed'),
    }),
  ),
});

export const PullRequested = z.object({ id: z.string() });

export const ProviderEntry = z.object({
  kind: z.string(),
  serves: z.array(z.string()),
  backends: z.array(z.string()),
  default_backend: z.string(),
  available: z.boolean(),
  reason: z.string().describe('What it runs in here; or why it cannot run, and what to do'),
  availability: z
    .array(
      z.object({ backend: z.string(), available: z.boolean(), reason: z.string().describe('Why this machine cannot run it, or empty') }),
    )
    .describe('Each backend, the preferred one first; empty if this version does not include the provider'),
});

export const Providers = z.object({ providers: z.array(ProviderEntry) });

export const Hardware = z.object({ memory_total_bytes: Bytes.nullable(), memory_available_bytes: Bytes.nullable() });
