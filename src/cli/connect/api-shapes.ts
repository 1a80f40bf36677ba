/** The answers of the API that `svcctl` reads, loosely: a newer service may say more. */
import { z } from 'zod';

const text = z.string().nullish();
const count = z.number().nullish();

const ConditionShape = z.looseObject({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() });

const ProgressShape = z.looseObject({ what: z.string(), done_bytes: z.number(), total_bytes: count }).nullish();

export const SlotShape = z.looseObject({
  name: z.string(),
  spec: z.record(z.string(), z.unknown()).nullish(),
  status: z.looseObject({
    state: z.string(),
    conditions: z.array(ConditionShape),
    observed_generation: z.number(),
    provider: text,
    backend: text,
    model: text,
    wanted_model: text,
    endpoint: text,
    memory_bytes: count,
    restarts: z.number(),
    replicas: z.looseObject({ present: z.number(), ready: z.number() }).nullish(),
    since: text,
    progress: ProgressShape,
  }),
  generation: z.number(),
  resource_version: text,
});
export type SlotShape = z.output<typeof SlotShape>;

export const SlotsShape = z.looseObject({ slots: z.array(SlotShape) });

export const StatusShape = z.looseObject({
  version: z.string(),
  runtime: z.string(),
  uptime_seconds: z.number(),
  slots: z.array(z.looseObject({ name: z.string(), in_flight: z.number(), parked: z.number() })),
});

export const ModelsShape = z.looseObject({
  models: z.array(
    z.looseObject({
      id: z.string(),
      provider: z.string(),
      family: z.string(),
      present: z.boolean(),
      size_bytes: count,
      memory_bytes: count,
      license: text,
      selectable: z.boolean(),
      reason: text,
    }),
  ),
});

export const PullsShape = z.looseObject({
  pulls: z.array(z.looseObject({ slot: z.string(), what: z.string(), done_bytes: z.number(), total_bytes: count })),
});

export const ProvidersShape = z.looseObject({
  providers: z.array(
    z.looseObject({
      kind: z.string(),
      serves: z.array(z.string()),
      backends: z.array(z.string()),
      default_backend: z.string(),
      available: z.boolean(),
      reason: z.string(),
    }),
  ),
});

export const PlanShape = z.looseObject({
  text: z.string(),
  changes: z.array(z.looseObject({ slot: z.string(), action: z.string(), because: z.string(), message: z.string() })),
});

export const ApplyShape = z.looseObject({
  dry_run: z.boolean(),
  slots: z.array(z.looseObject({ name: z.string(), result: z.string() })),
});

export const TimelineShape = z.looseObject({
  entries: z.array(z.looseObject({ seq: z.number(), at: text, kind: z.string(), message: z.string(), cause: text })),
});

export const ExplainShape = z.looseObject({ name: z.string(), text: z.string(), problems: z.array(z.string()) });

export const ErrorShape = z.looseObject({ error: z.looseObject({ message: z.string(), code: z.string().nullish() }) });
