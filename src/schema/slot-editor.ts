/** Edits of desired state: the only way in which `svcctl slot load`, the dashboard and the API start or stop anything. */
import type { SlotName } from './names.ts';
import type { SpecProblem } from './slot-spec.ts';

export interface StoredSlot {
  readonly name: SlotName;
  /** As written, keys in camelCase, unchecked; undefined when the text cannot be parsed at all. */
  readonly document: Readonly<Record<string, unknown>> | undefined;
  /** Opaque; changes with each change of the text. */
  readonly resourceVersion: string;
  /** Whoever keeps it has filled in defaults, as an API server does: it means the same as a document without them. */
  readonly defaultsFilled?: true;
}

/** Keys in camelCase; `null` removes a key (RFC 7396). */
export type SlotPatch = Readonly<Record<string, unknown>>;

export type EditResult =
  | { readonly kind: 'done'; readonly slot: StoredSlot; readonly created: boolean }
  | { readonly kind: 'not-found' }
  /** `ifMatch` names an older version. */
  | { readonly kind: 'conflict'; readonly resourceVersion: string }
  | { readonly kind: 'invalid'; readonly problems: readonly SpecProblem[] }
  /** The text could not be written: full disk, no permission. */
  | { readonly kind: 'failed'; readonly message: string };

export interface EditOptions {
  /** Only when the slot still has this resource version; `*`: only when it exists. */
  readonly ifMatch?: string;
  /** Check everything, write nothing. */
  readonly dryRun?: boolean;
}

export interface SlotEditor {
  list(): Promise<readonly StoredSlot[]>;
  read(name: SlotName): Promise<StoredSlot | undefined>;
  /** Replaces the whole document; creates the slot when there is none. */
  put(name: SlotName, document: unknown, options?: EditOptions): Promise<EditResult>;
  /** JSON merge patch; comments and order of the text stay. */
  patch(name: SlotName, patch: SlotPatch, options?: EditOptions): Promise<EditResult>;
  remove(name: SlotName, options?: EditOptions): Promise<EditResult>;
}
