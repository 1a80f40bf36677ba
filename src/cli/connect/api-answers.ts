/** The fields that `svcctl` uses of the API's answers. Other fields pass through, since a newer service may send more. */
import { z } from 'zod';

const text = z.string().nullish();
const count = z.number().nullish();
const transfer = { what: z.string(), done_bytes: z.number(), total_bytes: count, bytes_per_second: count, seconds_left: count };

export const SlotAnswer = z.looseObject({
  name: z.string(),
  spec: z.record(z.string(), z.unknown()).nullish(),
  status: z.looseObject({
    state: z.string(),
    conditions: z.array(z.looseObject({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() })),
    observed_generation: z.number(),
    provider: text,
    backend: text,
    model: text,
    endpoint: text,
    memory_bytes: count,
    restarts: z.number(),
    replicas: z.looseObject({ present: z.number(), ready: z.number() }).nullish(),
    since: text,
    progress: z.looseObject(transfer).nullish(),
  }),
  generation: z.number(),
  resource_version: text,
});
export type SlotAnswer = z.output<typeof SlotAnswer>;

export const SlotsAnswer = z.looseObject({ slots: z.array(SlotAnswer) });

const SlotTraffic = z.looseObject({
  name: z.string(),
  in_flight: z.number(),
  parked: z.number(),
  progress: z.object({ done: z.number(), total: z.number() }).nullish(),
});
export type SlotTraffic = z.output<typeof SlotTraffic>;

export const StatusAnswer = z.looseObject({ version: z.string(), slots: z.array(SlotTraffic) });

export const HardwareAnswer = z.looseObject({
  recording: z.looseObject({ file: z.string(), about: z.string() }).nullable(),
  cpu: z
    .looseObject({ model: z.string().nullable(), architecture: z.string(), threads: z.number(), cores: z.number().nullable() })
    .nullable(),
  memory_total_bytes: z.number().nullable(),
  memory_available_bytes: z.number().nullable(),
  devices: z.array(
    z.looseObject({
      id: z.string(),
      vendor: z.string(),
      name: z.string().nullable(),
      pci_address: z.string().nullable(),
      driver: z.string().nullable(),
      architecture: z.string().nullable(),
      path: z.string().nullable(),
      backends: z.array(z.string()),
      unavailable: z.array(z.looseObject({ backend: z.string(), reason: z.string() })),
      memory_total_bytes: z.number().nullable(),
      memory_free_bytes: z.number().nullable(),
      unified: z.boolean(),
    }),
  ),
  devices_hidden: z.string().nullable(),
  programs: z.array(z.looseObject({ provider: z.string(), name: z.string(), backends: z.array(z.string()) })),
});

export const ClusterAnswer = z.looseObject({
  pods: z.array(
    z.looseObject({
      name: z.string(),
      slot: text,
      phase: z.string(),
      ready: z.boolean(),
      terminating: z.boolean(),
      restarts: z.number(),
      node: text,
      created_at: text,
      reason: text,
      message: z.string(),
    }),
  ),
});

const ModelAnswer = z.looseObject({
  id: z.string(),
  kind: text,
  provider: z.string(),
  family: z.string(),
  present: z.boolean(),
  size_bytes: count,
  memory_bytes: count,
  min_memory_bytes: count,
  min_vram_bytes: count,
  context: count,
  quantization: text,
  parameters: count,
  pooling: text,
  experts: z.looseObject({ total: z.number(), active: count }).nullish(),
  abilities: z.array(z.string()).nullish(),
  license: text,
  license_url: text,
  verified: z.boolean().nullish(),
  selectable: z.boolean(),
  reason: text,
});
export type ModelAnswer = z.output<typeof ModelAnswer>;

export const ModelsAnswer = z.looseObject({ models: z.array(ModelAnswer) });

export const ModelDetailAnswer = ModelAnswer.extend({
  files: z.array(z.looseObject({ path: z.string(), size_bytes: count, sha256: text, url: text, present: z.boolean() })),
  sources: z.array(z.string()),
});

export const PullsAnswer = z.looseObject({
  pulls: z.array(z.looseObject({ slot: text, model: text, failed: z.boolean().optional(), message: text, ...transfer })),
});

export const ProvidersAnswer = z.looseObject({
  providers: z.array(
    z.looseObject({
      kind: z.string(),
      serves: z.array(z.string()),
      backends: z.array(z.string()),
      available: z.boolean(),
      reason: z.string(),
      availability: z.array(z.looseObject({ backend: z.string(), available: z.boolean() })).optional(),
    }),
  ),
});

export const PlanAnswer = z.looseObject({ text: z.string(), changes: z.array(z.unknown()) });

export const ApplyAnswer = z.looseObject({
  dry_run: z.boolean(),
  slots: z.array(z.looseObject({ name: z.string(), result: z.string() })),
});

export const TimelineAnswer = z.looseObject({
  entries: z.array(z.looseObject({ at: text, kind: z.string(), message: z.string(), cause: text })),
});

export const FitAnswer = z.looseObject({
  message: z.string(),
  fits: z.boolean(),
  quantisations: z.array(z.looseObject({ name: z.string(), size_bytes: z.number(), needed_bytes: z.number(), fits: z.boolean() })),
});
export type FitAnswer = z.output<typeof FitAnswer>;

export const ExplainAnswer = z.looseObject({ text: z.string(), problems: z.array(z.string()) });

export const ErrorAnswer = z.looseObject({ error: z.looseObject({ message: z.string(), code: text }) });
