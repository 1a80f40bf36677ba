/**
 * A port, not an implementation: named sets of slots that can be exchanged as a whole.
 * `host/slots/profile-directory.ts` keeps them in directories. Whether a profile is in force is found by comparison
 * whenever somebody asks, and is never stored.
 */
import type { ProfileName, SlotName } from '../words/names.ts';
import type { EditResult } from './slot-editor.ts';
import type { SpecProblem } from './spec-problem.ts';

type Document = Readonly<Record<string, unknown>>;

/** Effect of a profile on a slot. A slot missing in the profile is disabled and keeps everything else. */
export type ProfileChange = 'unchanged' | 'created' | 'updated' | 'disabled';

export interface ProfileSlot {
  readonly name: SlotName;
  readonly change: ProfileChange;
  /** What the slot says now, with keys in camelCase; undefined if there is no such slot, or if its text is not TOML. */
  readonly before: Document | undefined;
  /** What it says after the switch. */
  readonly after: Document;
}

export interface Profile {
  readonly name: ProfileName;
  /** The slots of the profile and all others, by name. Those whose text has a mistake are missing. */
  readonly slots: readonly ProfileSlot[];
  /** Why the profile cannot be switched to, with file, line and what to do. None: it can. */
  readonly problems: readonly SpecProblem[];
  /** Opaque; changes whenever the profile or a slot changes. */
  readonly resourceVersion: string;
}

/** A profile without the documents of its slots, of which there may be many. */
export interface ProfileSummary extends Omit<Profile, 'slots'> {
  readonly slots: readonly Pick<ProfileSlot, 'name' | 'change'>[];
}

/** The present slots are exactly what switching to the profile would make of them. Pure. */
export function isActive({ slots, problems }: Pick<ProfileSummary, 'slots' | 'problems'>): boolean {
  return problems.length === 0 && slots.every(({ change }) => change === 'unchanged');
}

export interface ProfileList {
  /** Sorted by name. */
  readonly profiles: readonly ProfileSummary[];
  /** Problems with entries in `profiles/` that are not profiles. */
  readonly problems: readonly SpecProblem[];
}

export interface SaveOptions {
  /** What the profile contains. Default: all slots as they are now. */
  readonly documents?: ReadonlyMap<SlotName, Document>;
  /** Refuse if a profile has this name. */
  readonly onlyNew?: boolean;
}

export type SavedProfile =
  | { readonly kind: 'saved'; readonly created: boolean }
  | { readonly kind: 'exists' }
  | { readonly kind: 'full'; readonly limit: number }
  | Extract<EditResult, { kind: 'invalid' | 'failed' }>;

export type AppliedProfile =
  /** What was found before the switch, and so what was done. */
  | { readonly kind: 'applied'; readonly profile: Profile }
  | Extract<EditResult, { kind: 'not-found' | 'invalid' | 'managed' | 'failed' }>
  /** The profile or a slot has changed since the version that the switch was made from. */
  | { readonly kind: 'conflict' };

export type RemovedProfile = 'removed' | 'not-found' | { readonly failure: string };

export interface ProfileStore {
  list(): Promise<ProfileList>;
  read(name: ProfileName): Promise<Profile | undefined>;
  /** Creates the profile, or replaces it as a whole. */
  save(name: ProfileName, options?: SaveOptions): Promise<SavedProfile>;
  remove(name: ProfileName): Promise<RemovedProfile>;
  /** Changes all slots or none. `ifMatch`: only if the profile still has this resource version. */
  apply(name: ProfileName, options?: { readonly ifMatch?: string }): Promise<AppliedProfile>;
}
