/** A port: how the API, `svcctl` and the dashboard edit desired state. There is no other way to change a slot. */
import type { SlotName } from '../words/names.ts';
import type { SpecProblem } from './slot-spec.ts';
import { isTable } from '../words/key-case.ts';

export interface StoredSlot {
  readonly name: SlotName;
  /** The document as written, with keys in camelCase and not validated. Undefined if the text cannot be parsed. */
  readonly document: Readonly<Record<string, unknown>> | undefined;
  /** Opaque; changes whenever the text changes. */
  readonly resourceVersion: string;
  /** The text as written, where slots are files. */
  readonly text?: string;
  /** Set if the storage fills in defaults, as an API server does: the document then means the same without them. */
  readonly defaultsFilled?: true;
}

/** Keys in camelCase; `null` removes a key (RFC 7396). */
export type SlotPatch = Readonly<Record<string, unknown>>;

export type EditResult =
  | { readonly kind: 'done'; readonly slot: StoredSlot; readonly created: boolean }
  | { readonly kind: 'not-found' }
  /** The slot no longer has the version in `ifMatch`. */
  | { readonly kind: 'conflict'; readonly resourceVersion: string }
  | { readonly kind: 'invalid'; readonly problems: readonly SpecProblem[] }
  /** A repository declares the slot, and its text would be put back. */
  | { readonly kind: 'managed'; readonly message: string }
  /** The document could not be written, for example because the disk is full. */
  | { readonly kind: 'failed'; readonly message: string };

export interface EditOptions {
  /** Edit only if the slot still has this resource version; `*` requires only that it exists. */
  readonly ifMatch?: string;
  /** Validate the edit without writing it. */
  readonly dryRun?: boolean;
  /** Where slots are files, `put` writes this text, with its comments, if it means the same as the document. */
  readonly text?: string;
  /** For the record: the number of the revision that this edit writes again. */
  readonly undoOf?: number;
}

export interface SlotEditor {
  list(): Promise<readonly StoredSlot[]>;
  read(name: SlotName): Promise<StoredSlot | undefined>;
  /** Replaces the whole document. Creates the slot if it does not exist. */
  put(name: SlotName, document: unknown, options?: EditOptions): Promise<EditResult>;
  /** Applies a JSON merge patch. Comments and the order of keys are preserved. */
  patch(name: SlotName, patch: SlotPatch, options?: EditOptions): Promise<EditResult>;
  remove(name: SlotName, options?: EditOptions): Promise<EditResult>;
}

/** One of several texts that are written together. */
export interface TextEdit {
  readonly name: SlotName;
  /** The text that the edit was made from; undefined if there was no file. */
  readonly before: string | undefined;
  /** A valid text of this slot. */
  readonly text: string;
}

export type TextEdits =
  | { readonly kind: 'done' }
  /** A slot no longer has the text that the edit was made from. */
  | { readonly kind: 'conflict'; readonly name: SlotName }
  | Extract<EditResult, { kind: 'managed' | 'failed' }>;

/** Writes texts of slots as they are, where slots are files. */
export interface SlotTextEditor {
  /** All or nothing: writes only if every file is writable and unchanged since its edit. A pass sees all or none. */
  putTexts(edits: readonly TextEdit[]): Promise<TextEdits>;
}

/** Applies a JSON merge patch (RFC 7396): merges objects, `null` removes a key, other values replace. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isTable(patch)) return patch;
  const merged = new Map(isTable(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else if (value !== undefined) merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
