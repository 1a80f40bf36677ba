/** Answers of `/api` as schemas, source of the OpenAPI document and handler types. Keys: snake_case; unknown: null. */
import { z } from 'zod';
import { FailedRollout } from '../slot/evaluation-case.ts';
import { MODEL_ABILITIES, MODEL_KINDS, BACKENDS, CAPABILITIES } from '../slot/provider-kinds.ts';
import { ProviderName, SlotName } from '../words/names.ts';
import { DEVICE_VENDORS } from './hardware.ts';
import { CONDITION_TYPES, SLOT_STATES, TIMELINE_KINDS } from './slot-status.ts';

const Count = z.int().min(0);
const Bytes = z.number().min(0);
const Time = z.iso.datetime();
const State = z.enum(SLOT_STATES);
const Backend = z.enum(BACKENDS);
export const HardwareSource = z
  .enum(['machine', 'recording', 'none'])
  .describe('"recording": the file of "SVC_HARDWARE_FILE" takes the place of this machine; "none": the service runs in a cluster');

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
  provider: ProviderName.nullable(),
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
  rollout: FailedRollout.nullable(),
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

const OnHost = z.string().nullable().describe('What the CPU computes, because the devices are too small for all of it; null: nothing');

export const FitAnswer = z.object({
  model: z.string(),
  message: z.string().describe('The answer in words'),
  backend: Backend,
  fits: z.boolean().describe('It fits beside other programs, if other slots give way'),
  fits_now: z.boolean().describe('It fits beside everything that slots have now'),
  needed_bytes: Bytes,
  placement: z.array(z.object({ memory: z.string(), bytes: Bytes })).describe('What it needs, by where it would be'),
  on_host: OnHost,
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
    on_host: OnHost,
    short: MemoryPart.extend({ budget_bytes: Bytes, promised_bytes: Bytes, others_bytes: Bytes })
      .extend({
        kept_for: SlotName.nullable().describe('The slot would fit, and the one with this name waits for the same memory and comes first'),
      })
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
            .enum(['always', 'loading', 'turn', 'overdue', 'waiting', 'served', 'idle', 'warm', 'unloaded'])
            .describe('What gives the slot its place'),
        }),
      )
      .describe('The slots that share the memory, if it is short: at most ten without memory, and ten with it, in order'),
  })
  .describe('How memory was shared out, as far as the slot is concerned');

export const WorkloadEntry = z.object({
  name: z.string(),
  phase: z.enum(['created', 'running', 'stopping', 'exited']),
  serving: z.boolean().describe('It gets the requests of the slot'),
  generation: Count.describe('Of the slot, when the workload was applied'),
  started_at: Time.nullable(),
  pid: Count.nullable().describe('Null unless it is a process of this machine'),
  container: z.string().nullable().describe('ID of its container; null without one, and in a cluster'),
  in_flight: Count.describe('Requests that its server has now'),
  memory_bytes: Bytes.nullable().describe('Measured use of the memory of the host, with mapped files; null: not known'),
  device_memory_bytes: Bytes.nullable().describe('Measured use of the memory of devices; null: not known'),
  message: z.string().nullable().describe('Why it waits, lacks something or has ended'),
});

export const Explanation = z.object({
  name: SlotName,
  text: z.string(),
  problems: z.array(z.string()),
  workloads: z.array(WorkloadEntry).describe('As observed last: two while one replaces the other'),
  memory: MemoryShare.nullable().describe('Null if the slot needs no memory now'),
});

export const Plan = z.object({
  text: z.string(),
  changes: z.array(z.object({ slot: SlotName, action: z.string(), because: z.string(), message: z.string() })),
  failing: z
    .array(z.object({ slot: SlotName, reason: z.string(), message: z.string() }))
    .describe('Slots that could not be loaded after the change; for a plan without documents, those that cannot be loaded now'),
});

export const Applied = z.object({
  dry_run: z.boolean(),
  slots: z.array(z.object({ name: SlotName, result: z.enum(['created', 'updated', 'unchanged', 'deleted']) })),
});

export const ModelEntry = z.object({
  id: z.string(),
  kind: z.enum(MODEL_KINDS).nullable().describe('What the model is for; null if it is not in the catalogue'),
  provider: z.string(),
  family: z.string(),
  present: z.boolean(),
  size_bytes: Bytes.nullable(),
  memory_bytes: Bytes.nullable(),
  min_memory_bytes: Bytes.nullable().describe('What the model needs at least'),
  min_vram_bytes: Bytes.nullable().describe('What the model needs at least of the memory of a discrete GPU'),
  context: z.number().nullable().describe('Longest context in tokens'),
  quantization: z.string().nullable().describe('How the weights are stored; null until the files are there, or if they do not say it'),
  parameters: z.number().nullable().describe('Number of weights'),
  pooling: z
    .string()
    .nullable()
    .describe('How the model makes one vector of those of its tokens, or "rank" if it scores; null for a model that generates'),
  experts: z
    .object({ total: z.number(), active: z.number().nullable() })
    .nullable()
    .describe('Of a mixture of experts: how many there are, and how many compute a token'),
  abilities: z.array(z.enum(MODEL_ABILITIES)).nullable().describe('What requests can ask of the model; null if it is not known'),
  license: z.string().nullable(),
  license_url: z.string().nullable(),
  verified: z
    .boolean()
    .nullable()
    .describe('Whether the files were downloaded and compared with the catalogue before it was published; null if the model is not in it'),
  selectable: z.boolean(),
  reason: z.string().nullable().describe('Why the model cannot be selected'),
});

export const ModelDetail = ModelEntry.extend({
  files: z.array(
    z.object({
      path: z.string().describe('Relative to the model store'),
      size_bytes: Bytes.nullable(),
      sha256: z.string().nullable(),
      url: z.string().nullable().describe('Where the file is downloaded from; null if it is not downloaded'),
      present: z.boolean(),
    }),
  ),
  sources: z.array(z.string()).describe('Pages where what the catalogue says can be checked'),
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

export const PullRequested = z.object({
  id: z.string(),
  accepted: z
    .array(z.object({ url: z.string(), size_bytes: z.number() }))
    .describe('Files that are accepted from now on although the catalogue does not list them'),
});

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

export const DeviceEntry = z.object({
  id: z.string().describe('"gpu0", "npu0": stable as long as no device is added or removed'),
  kind: z.enum(['gpu', 'npu']),
  vendor: z.enum(DEVICE_VENDORS),
  name: z.string().nullable(),
  pci_address: z.string().nullable(),
  driver: z.string().nullable().describe('The kernel driver'),
  architecture: z.string().nullable().describe('What programs are built for, such as "gfx1151" or "sm_86"'),
  path: z.string().nullable().describe('The device file'),
  backends: z.array(Backend),
  unavailable: z
    .array(z.object({ backend: z.string(), reason: z.string() }))
    .describe('Backends that the device cannot be used with, and why'),
  memory_total_bytes: Bytes.nullable(),
  memory_free_bytes: Bytes.nullable().describe('null if the driver does not report what is in use'),
  memory_dedicated_bytes: Bytes.nullable().describe('Of a device that shares the memory of the host: what the firmware sets aside for it'),
  unified: z.boolean().describe('Whether it computes in the memory of the host'),
});

export const Hardware = z.object({
  source: HardwareSource,
  recording: z.object({ file: z.string(), about: z.string() }).nullable(),
  cpu: z.object({ model: z.string().nullable(), architecture: z.string(), threads: Count, cores: Count.nullable() }).nullable(),
  memory_total_bytes: Bytes.nullable().describe(
    'What workloads may use: the memory of the machine, or the limit of the service’s own container',
  ),
  memory_available_bytes: Bytes.nullable(),
  devices: z.array(DeviceEntry),
  devices_hidden: z.string().nullable().describe('Why devices cannot be seen, as in a container; then the list says nothing'),
  programs: z
    .array(z.object({ provider: z.string(), name: z.string(), backends: z.array(Backend) }))
    .describe('What the model servers that are installed on this machine report that they can compute with'),
});
