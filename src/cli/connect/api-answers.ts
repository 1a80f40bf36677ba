/** The fields that `svcctl` uses of the API's answers. Other fields pass through, since a newer service may send more. */
import { anything, count, each, fields, flag, maybe, named, orNull, text, type Read } from './answer-shape.ts';

const maybeText = maybe(text);
const maybeCount = maybe(count);
const transfer = { what: text, done_bytes: count, total_bytes: maybeCount, bytes_per_second: maybeCount, seconds_left: maybeCount };

export const SlotAnswer = fields({
  name: text,
  spec: maybe(named(anything)),
  status: fields({
    state: text,
    conditions: each(fields({ type: text, status: text, reason: text, message: text })),
    observed_generation: count,
    provider: maybeText,
    backend: maybeText,
    model: maybeText,
    endpoint: maybeText,
    memory_bytes: maybeCount,
    restarts: count,
    replicas: maybe(fields({ present: count, ready: count })),
    since: maybeText,
    progress: maybe(fields(transfer)),
  }),
  generation: count,
  resource_version: maybeText,
});
export type SlotAnswer = Read<typeof SlotAnswer>;

export const SlotsAnswer = fields({ slots: each(SlotAnswer) });

const SlotTraffic = fields({
  name: text,
  in_flight: count,
  parked: count,
  progress: maybe(fields({ done: count, total: count })),
});
export type SlotTraffic = Read<typeof SlotTraffic>;

export const StatusAnswer = fields({ version: text, slots: each(SlotTraffic) });

export const HardwareAnswer = fields({
  recording: orNull(fields({ file: text, about: text })),
  cpu: orNull(fields({ model: orNull(text), architecture: text, threads: count, cores: orNull(count) })),
  memory_total_bytes: orNull(count),
  memory_available_bytes: orNull(count),
  devices: each(
    fields({
      id: text,
      vendor: text,
      name: orNull(text),
      pci_address: orNull(text),
      driver: orNull(text),
      architecture: orNull(text),
      path: orNull(text),
      backends: each(text),
      unavailable: each(fields({ backend: text, reason: text })),
      memory_total_bytes: orNull(count),
      memory_free_bytes: orNull(count),
      unified: flag,
    }),
  ),
  devices_hidden: orNull(text),
  programs: each(fields({ provider: text, name: text, backends: each(text) })),
});

export const ClusterAnswer = fields({
  pods: each(
    fields({
      name: text,
      slot: maybeText,
      phase: text,
      ready: flag,
      terminating: flag,
      restarts: count,
      node: maybeText,
      created_at: maybeText,
      reason: maybeText,
      message: text,
    }),
  ),
});

const model = {
  id: text,
  kind: maybeText,
  provider: text,
  family: text,
  present: flag,
  size_bytes: maybeCount,
  memory_bytes: maybeCount,
  min_memory_bytes: maybeCount,
  min_vram_bytes: maybeCount,
  context: maybeCount,
  quantization: maybeText,
  parameters: maybeCount,
  pooling: maybeText,
  experts: maybe(fields({ total: count, active: maybeCount })),
  abilities: maybe(each(text)),
  license: maybeText,
  license_url: maybeText,
  verified: maybe(flag),
  selectable: flag,
  reason: maybeText,
};
const ModelAnswer = fields(model);
export type ModelAnswer = Read<typeof ModelAnswer>;

export const ModelsAnswer = fields({ models: each(ModelAnswer) });

export const ModelDetailAnswer = fields({
  ...model,
  files: each(fields({ path: text, size_bytes: maybeCount, sha256: maybeText, url: maybeText, present: flag })),
  sources: each(text),
});

export const PullsAnswer = fields({
  pulls: each(fields({ slot: maybeText, model: maybeText, failed: maybe(flag), message: maybeText, ...transfer })),
});

export const ProvidersAnswer = fields({
  providers: each(
    fields({
      kind: text,
      serves: each(text),
      backends: each(text),
      available: flag,
      reason: text,
      availability: maybe(each(fields({ backend: text, available: flag }))),
    }),
  ),
});

export const PlanAnswer = fields({ text: text, changes: each(anything) });

export const ApplyAnswer = fields({
  dry_run: flag,
  slots: each(fields({ name: text, result: text })),
});

export const TimelineAnswer = fields({
  entries: each(fields({ at: maybeText, kind: text, message: text, cause: maybeText })),
});

export const FitAnswer = fields({
  message: text,
  fits: flag,
  quantisations: each(fields({ name: text, size_bytes: count, needed_bytes: count, fits: flag })),
});
export type FitAnswer = Read<typeof FitAnswer>;

export const ExplainAnswer = fields({ text: text, problems: each(text) });

export const ErrorAnswer = fields({ error: fields({ message: text, code: maybeText }) });
