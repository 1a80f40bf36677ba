/**
 * Answers of `/api/profiles`, `/api/requests`, `/api/captures`, `/api/mcp`, `/api/cluster`, of revisions and of
 * searches as schemas; the port of captures.
 */
import { z } from 'zod';
import { Applied, Plan, Problem } from './answers.ts';
import { ProfileName, SlotName } from '../words/names.ts';
import { POD_PHASES } from './cluster-listing.ts';
import { REVISION_OUTCOMES } from '../slot/revision-store.ts';

const SwitchedSlot = z.object({
  name: SlotName,
  result: z
    .enum(['unchanged', 'created', 'updated', 'disabled'])
    .describe('What a switch does with the slot; "disabled": the profile does not have it'),
});

const profile = {
  name: ProfileName,
  active: z.boolean().describe('The slots are as this profile has them; found by comparison, and not stored'),
  problems: z.array(Problem).describe('Why it cannot be switched to'),
};

export const ProfileEntry = z.object({
  ...profile,
  slots: z.array(SwitchedSlot).describe('The slots of the profile and those that it does not have; those with a mistake are missing'),
});

export const Profiles = z.object({
  profiles: z.array(ProfileEntry),
  problems: z.array(Problem).describe('Of what is no profile, though it is where profiles are'),
});

export const ProfileDetail = z.object({
  ...profile,
  resource_version: z.string().describe('For "If-Match"; changes whenever the profile or a slot changes'),
  slots: z.array(SwitchedSlot.extend({ spec: z.record(z.string(), z.unknown()).describe('The document of the slot after a switch') })),
});

export const SwitchedProfile = z.object({
  dry_run: z.boolean(),
  name: ProfileName,
  resource_version: z.string().describe('What the plan was made from'),
  slots: z.array(SwitchedSlot),
  plan: Plan.describe('What the controller does about it'),
});

const Count = z.int().min(0);

/** A line of the file, too. */
export const Change = z.object({
  at: z.iso.datetime(),
  who: z.string().describe('The label of the token, or the name that a proxy forwards; "anyone" without authentication'),
  caller: z.string().nullable().describe('As in "/api/requests"; null without authentication'),
  scope: z.string().nullable(),
  address: z.string().nullable(),
  request_id: z.string(),
  slot: SlotName.nullable().describe('The slot that was changed; null for other changes'),
  message: z.string().describe('What was done, behind the name of who did it'),
});
export type Change = Readonly<z.output<typeof Change>>;

const PlannedSlot = z.object({
  name: SlotName,
  result: Applied.shape.slots.element.shape.result,
  keys: z
    .array(z.object({ key: z.string(), before: z.unknown().optional(), after: z.unknown().optional() }))
    .describe('Every key that changes, such as "model.default"; without a value where it is not set'),
});
export type PlannedSlot = Readonly<z.output<typeof PlannedSlot>>;

export const AgentPlan = z.object({
  id: z.string(),
  by: z.string().describe('The label of the token that the agent uses, or the name that a proxy forwards'),
  caller: z.string(),
  waits: z.boolean().describe('For a person who approves it'),
  expires_at: z.iso.datetime(),
  slots: z.array(PlannedSlot),
  text: z.string().describe('What the controller would do'),
});
export const AgentPlans = z.object({ plans: z.array(AgentPlan) });

export const Changes = z.object({ changes: z.array(Change).describe('The newest first') });

export const Capture = z.object({
  id: z.string(),
  caller: z.string().nullable().describe('Key of the caller whose requests are captured; null: of any'),
  slot: SlotName.nullable().describe('The slot whose requests are captured; null: of any'),
  active: z.boolean(),
  ended_by: z.string().nullable().describe('Why it has ended; null while it runs, and after a restart of the service'),
  requests: Count.nullable().describe('Requests in the file; null after a restart of the service'),
  size_bytes: Count,
  started_at: z.iso.datetime(),
  expires_at: z.iso.datetime().describe('When the file is deleted'),
});

export type Capture = Readonly<z.output<typeof Capture>>;

export const Captures = z.object({ captures: z.array(Capture).describe('The newest first') });
export const StartedCapture = Capture.extend({
  key: z.string().describe('Decrypts the file. It is shown only here, and stored nowhere'),
});
export type StartedCapture = Readonly<z.output<typeof StartedCapture>>;

export interface CaptureWish {
  /** Key of a caller. */
  readonly caller?: string | undefined;
  readonly slot?: SlotName | undefined;
  readonly requests: number;
  readonly seconds: number;
}

/** The port of captures. An id that no capture can have is that of no capture. */
export interface CaptureStore {
  /** How many run. */
  active(): number;
  /** Requests that begin after this are captured. Returns why not: too many run, or the file cannot be written. */
  start(wish: CaptureWish): Promise<StartedCapture | { readonly problem: string }>;
  /** The newest first. */
  list(): Promise<readonly Capture[]>;
  /** Ends a capture that runs. Undefined: no such capture, as below. */
  stop(id: string): Promise<Capture | undefined>;
  /** The sealed file. */
  read(id: string): Promise<string | undefined>;
  remove(id: string): Promise<boolean>;
}
const RevisionEntry = z.object({
  revision: z.int().min(1).describe('The generation of the slot that it was in force as'),
  at: z.iso.datetime().nullable().describe('Since when it was in force'),
  who: z.string().describe('As in "/api/audit"; "file" if the text was not edited through the API'),
  undo_of: Count.nullable().describe('The revision that an undo wrote again; null for other edits'),
  outcome: z
    .enum(REVISION_OUTCOMES)
    .describe(
      '"pending": not in force yet; "served": it answered; "at_rest": in force without a server; "never_ready": replaced before; "rolled_back": an undo replaced it, or its model failed the cases of the slot',
    ),
  present: z.boolean().describe('It is the newest one'),
  message: z.string().nullable().describe('What it changed; null if the revision before it is not kept'),
  spec: z.record(z.string(), z.unknown()),
});

export const RevisionList = z.object({
  name: SlotName,
  kept: z.boolean().describe('Whether revisions are kept here: "SVC_REVISION_HISTORY"'),
  revisions: z.array(RevisionEntry).describe('The newest first'),
});

export const Undone = z.object({
  name: SlotName,
  dry_run: z.boolean(),
  result: z.enum(['undone', 'unchanged']).describe('"unchanged": the slot says the same as the revision already'),
  revision: z.int().min(1).describe('The revision whose spec the slot has now'),
  message: z.string().describe('What the undo changed'),
});

const Pod = z.object({
  name: z.string(),
  slot: SlotName.nullable(),
  phase: z.enum(POD_PHASES),
  ready: z.boolean().describe('It gets requests'),
  terminating: z.boolean(),
  restarts: Count.describe('Of all its containers'),
  node: z.string().nullable().describe('Null while no node has accepted it'),
  created_at: z.iso.datetime().nullable(),
  reason: z
    .string()
    .nullable()
    .describe('Why it does not run; the conditions page of the reference lists all. Only the leader reads Events'),
  message: z.string().describe('The reason in words, with what to do; empty without one'),
});

export const Cluster = z.object({
  replica: z.string().nullable().describe('The replica of the gateway that answers; null if the service does not run in a cluster'),
  leader: z.string().nullable().describe('The replica of the gateway that leads, as far as the one that answers knows; null if none does'),
  leads: z.boolean().describe('Whether the replica that answers is the one that executes plans'),
  pods: z.array(Pod).describe('Those that do not get requests first'),
  pods_total: Count.describe('How many there are, also beyond the limit'),
  pods_ready: Count,
});

const Amount = z.number().min(0);

export const UsageReport = z.object({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  problem: z.string().nullable().describe('Why something is missing, or not stored. null: nothing is'),
  energy_sources: z
    .array(
      z.object({
        source: z.string().describe('`RAPL package-0`, `amdgpu 0000:03:00.0`, `nvidia-smi 0000:01:00.0`'),
        problem: z.string().nullable().describe('Why its energy is not counted; null: it is'),
      }),
    )
    .describe('Sensors of energy, as they were read last; empty before the first request, and where there are none'),
  usage: z
    .array(
      z.object({
        time: z.iso.datetime().nullable().describe('Beginning of the hour or day (UTC). null unless grouped by one'),
        caller: z
          .string()
          .nullable()
          .describe('`token:<id>`, `user:<name>`, `anyone`, `local`, `wyoming`, `others`; null unless grouped by token'),
        label: z.string().nullable().describe('Label of the token; null for other callers and for tokens that were revoked'),
        slot: z.string().nullable().describe('Empty for requests that reached none; null unless grouped by slot'),
        model: z.string().nullable().describe('That of the slot at the time; null unless grouped by model'),
        requests: Amount,
        errors: Amount.describe('Requests with a status from 400, also those whose client left'),
        input_tokens: Amount.describe('Tokens of prompts, also cached ones'),
        cached_tokens: Amount.describe('Tokens of prompts that the server had computed before'),
        output_tokens: Amount,
        estimated_requests: Amount.describe('Requests whose output tokens were counted by events, and whose prompts were not counted'),
        queue_seconds: Amount.describe('How long requests waited for their slot'),
        busy_seconds: Amount.describe('How long servers worked on requests, added up'),
        audio_seconds: Amount.nullable().describe('Sound that was heard or spoken, where its length was known; null: none was'),
        images: Amount.nullable().describe('Images in answers; null: none'),
        energy_wh: Amount.nullable().describe('Estimate in watt-hours, as far as sensors of this machine told it; null: nothing is known'),
        cost: z
          .array(z.object({ currency: z.string(), amount: Amount }))
          .describe('By the prices that slots had when requests ended, for each currency; empty where no slot has a price'),
        loads: z.int().min(0).describe('How often the slot was loaded for a request of the caller'),
        evictions: z.int().min(0).describe('How often the slot was stopped to make room for one that was loaded for the caller'),
      }),
    )
    .describe('By time, then by caller, slot and model'),
});

export const SlotText = z.object({ text: z.string(), resource_version: z.string().describe('For "If-Match"') });

const Bytes = z.number().min(0);
const FoundQuantisation = z.object({
  uri: z.string().describe('For `model.default` of a slot'),
  quantisation: z.string().nullable().describe('As in the name of the file, such as "Q4_K_M"'),
  files: z.array(z.string()).describe('Paths in the repository, without the projector; several for a split model'),
  size_bytes: Bytes.describe('All files, with the projector'),
  needed_bytes: Bytes.nullable().describe('Estimate of the memory; null in a cluster, and where this machine cannot run GGUF models'),
  fits: z.boolean().nullable().describe('It fits on this machine, if other slots give way; null if that is not known'),
  projector: z.string().nullable().describe('Path of the file with which the model takes images or sound'),
});

export const ModelSearch = z.object({
  models: z.array(
    z.object({
      id: z.string().describe('Repository on the Hub: "owner/repo"'),
      url: z.string(),
      task: z.string().nullable().describe('As its publisher states it, such as "text-generation"'),
      downloads: z.number().describe('In the last 30 days'),
      likes: z.number(),
      license: z.string().nullable(),
      license_url: z.string().nullable(),
      needs_acceptance: z.boolean().describe('The licence restricts the use of the model, and was not accepted here'),
      gated: z.boolean().describe('The Hub sends the files only to accounts that have accepted its terms'),
      quantisations: z.array(FoundQuantisation).describe('Largest first, 40 at most'),
      draft: z.string().nullable().describe('File for speculative decoding (`model.draft.model`)'),
      problem: z.string().nullable().describe('Why files are missing'),
    }),
  ),
  next: z.string().nullable().describe('`cursor` of the next page; null: there are no more'),
});
