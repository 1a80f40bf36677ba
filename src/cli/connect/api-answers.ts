/**
 * The answers that `svcctl` reads, as schemas of the API without the fields that `svcctl` does not need, so that it
 * works with older services too. Only types are imported from here at run time: zod takes longer to load than most
 * verbs take, so `npm run generate` writes the checks to `answer-shapes.json`.
 */
import { z } from 'zod';
import { ErrorAnswer } from '../../api/manage/system-answers.ts';
import { Created, TokenFacts, Tokens } from '../../api/manage/token-routes.ts';
import * as api from '../../schema/status/answers.ts';
import * as lists from '../../schema/status/slot-lists.ts';
import { SourceDiff, SourceStatus } from '../../schema/status/config-source.ts';
import {
  AgentPlan,
  AgentPlans,
  Capture,
  Captures,
  Changes,
  Cluster,
  ModelSearch,
  ProfileDetail,
  Profiles,
  RevisionList,
  StartedCapture,
  SwitchedProfile,
  Undone,
  UsageReport,
} from '../../schema/status/resource-answers.ts';

const Conditions = z.array(api.Condition.omit({ observed_generation: true }));
const Slot = api.Slot.extend({ status: api.SlotStatus.omit({ capabilities: true, problems: true }).extend({ conditions: Conditions }) });
const SlotLine = lists.SlotLine.pick({ name: true, in_flight: true, parked: true, progress: true });
const Plan = api.Plan.pick({ text: true }).extend({ changes: z.array(z.unknown()), failing: api.Plan.shape.failing.optional() });
const Availability = z.array(api.ProviderEntry.shape.availability.element.omit({ reason: true }));
const Provider = api.ProviderEntry.omit({ default_backend: true }).extend({ availability: Availability.optional() });
const UsedRow = UsageReport.shape.usage.element;

export const ANSWERS = {
  agentPlan: AgentPlan,
  agentPlans: AgentPlans,
  anything: z.unknown(),
  applied: api.Applied,
  capture: Capture,
  captures: Captures,
  changes: Changes,
  cluster: Cluster.pick({ pods: true }),
  createdToken: Created.omit({ warning: true }),
  token: TokenFacts,
  error: z.object({ error: ErrorAnswer.shape.error.pick({ message: true, code: true }) }),
  explanation: api.Explanation.pick({ text: true, problems: true }),
  fit: api.FitAnswer.pick({ message: true, fits: true, quantisations: true }),
  hardware: api.Hardware.omit({ source: true }).extend({ devices: z.array(api.DeviceEntry.omit({ kind: true })) }),
  model: api.ModelDetail,
  models: api.Models,
  modelSearch: ModelSearch,
  plan: Plan,
  profile: ProfileDetail.omit({ resource_version: true }),
  profiles: Profiles,
  profileSwitch: SwitchedProfile.omit({ resource_version: true }).extend({ plan: Plan }),
  providers: z.object({ providers: z.array(Provider) }),
  pullStarted: api.PullRequested.pick({ accepted: true }).partial(),
  pulls: z.object({ pulls: z.array(api.Pulls.shape.pulls.element.partial({ failed: true, message: true })) }),
  requests: lists.RequestEntries.extend({ in_flight: lists.RequestEntries.shape.in_flight.optional() }),
  revisions: RevisionList,
  slot: Slot,
  slots: z.object({ slots: z.array(Slot), continue: lists.SlotList.shape.continue.optional() }),
  source: SourceStatus,
  sourceDiff: SourceDiff,
  startedCapture: StartedCapture,
  status: z.object({
    version: z.string(),
    runtime: lists.Status.shape.runtime.optional(),
    captures: lists.Status.shape.captures.optional(),
    slots: z.array(SlotLine),
    limits: z.unknown().optional(),
  }),
  timeline: z.object({ entries: z.array(api.TimelineEntry.omit({ seq: true, slot: true })) }),
  tokens: Tokens,
  undone: Undone,
  usage: UsageReport.pick({ problem: true }).extend({
    usage: z.array(UsedRow.partial({ audio_seconds: true, images: true, energy_wh: true, cost: true, loads: true, evictions: true })),
  }),
};

export type AnswerName = keyof typeof ANSWERS;
export type Answer<N extends AnswerName> = Lenient<z.output<(typeof ANSWERS)[N]>>;
export type SlotAnswer = Answer<'slot'>;
export type ModelAnswer = Answer<'models'>['models'][number];

/** A newer service may send other strings than the schema lists, and an older one may leave out what can be null. */
type Lenient<T> = T extends string
  ? string
  : T extends readonly (infer E)[]
    ? readonly Lenient<E>[]
    : T extends object
      ? { readonly [K in keyof T as null extends T[K] ? never : K]: Lenient<T[K]> } & {
          readonly [K in keyof T as null extends T[K] ? K : never]?: Lenient<T[K]> | undefined;
        }
      : T;
