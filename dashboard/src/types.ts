/** Response types of the API, derived from the schemas of the service. */
import type { z } from 'zod';
import type { Scope } from '../../src/schema/words/access.ts';
import type { CallerLimits } from '../../src/schema/words/caller-limits.ts';
import type * as answers from '../../src/schema/status/answers.ts';
import type * as sources from '../../src/schema/status/config-source.ts';
import type * as lists from '../../src/schema/status/slot-lists.ts';
import type * as resources from '../../src/schema/status/resource-answers.ts';

export type Slot = z.output<typeof answers.Slot>;
export type SlotState = Slot['status']['state'];
export type Condition = z.output<typeof answers.Condition>;
export type Progress = z.output<typeof answers.Progress>;
export type SlotText = z.output<typeof resources.SlotText>;
export type SlotList = z.output<typeof lists.SlotList>;
export type SlotLine = z.output<typeof lists.SlotLine>;
export type Status = z.output<typeof lists.Status>;
export type TimelineEntry = z.output<typeof answers.TimelineEntry>;
export type Timeline = z.output<typeof answers.Timeline>;
export type Explanation = z.output<typeof answers.Explanation>;
export type Plan = z.output<typeof answers.Plan>;
export type Profiles = z.output<typeof resources.Profiles>;
export type ProfileEntry = z.output<typeof resources.ProfileEntry>;
export type SwitchedProfile = z.output<typeof resources.SwitchedProfile>;
export type ModelEntry = z.output<typeof answers.ModelEntry>;
export type Models = z.output<typeof answers.Models>;
export type ModelSearch = z.output<typeof resources.ModelSearch>;
export type FoundModel = ModelSearch['models'][number];
export type FitAnswer = z.output<typeof answers.FitAnswer>;
export type Pulls = z.output<typeof answers.Pulls>;
export type Pull = Pulls['pulls'][number];
export type Providers = z.output<typeof answers.Providers>;
export type RequestEntries = z.output<typeof lists.RequestEntries>;
export type UsageReport = z.output<typeof resources.UsageReport>;
export type UsageRow = UsageReport['usage'][number];
export type Changes = z.output<typeof resources.Changes>;
export type AgentPlans = z.output<typeof resources.AgentPlans>;
export type Revisions = z.output<typeof resources.RevisionList>;
export type Revision = Revisions['revisions'][number];
export type SourceStatus = z.output<typeof sources.SourceStatus>;
export type SourceDiff = z.output<typeof sources.SourceDiff>;
export type Cluster = z.output<typeof resources.Cluster>;
export type Pod = Cluster['pods'][number];
export type Hardware = z.output<typeof answers.Hardware>;

export type Capability = Slot['status']['capabilities'][number];
export type InstallState = {
  readonly complete: boolean;
  readonly steps: readonly { readonly id: string; readonly done: boolean; readonly hint: string }[];
};

export type { Scope } from '../../src/schema/words/access.ts';

export type TokenLimits = CallerLimits;

export interface TokenEntry {
  readonly id: string;
  readonly label: string;
  readonly scope: Scope;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly limits: TokenLimits;
  readonly last_used_at: string | null;
}

export interface CreatedToken extends Omit<TokenEntry, 'last_used_at'> {
  /** The secret, which the service returns only once. */
  readonly token: string;
}

export interface AuthStatus {
  readonly auth_enabled: boolean;
  readonly mode: 'off' | 'basic';
  readonly scope: Scope | null;
}
