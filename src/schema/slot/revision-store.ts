/** A port: the documents of slots that were in force, with who wrote them and what became of them. */
import type { SlotName } from '../words/names.ts';

/**
 * `pending`: the present one, which is not in force yet. `at_rest`: in force without a server, since the slot is off or
 * loads on demand. `never_ready`: replaced before it was in force. `rolled_back`: an undo replaced it, or its model
 * failed the cases of the slot.
 */
export const REVISION_OUTCOMES = ['pending', 'served', 'at_rest', 'never_ready', 'rolled_back'] as const;
export type RevisionOutcome = (typeof REVISION_OUTCOMES)[number];

/** Who wrote a text. */
export interface Author {
  readonly who: string;
  /** The number of the revision whose document an undo wrote again. */
  readonly undoOf?: number | undefined;
}

export interface Revision extends Author {
  /** The generation that it was in force as. */
  readonly number: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly outcome: RevisionOutcome;
  /** Keys in camelCase. */
  readonly document: Readonly<Record<string, unknown>>;
}

export interface RevisionStore {
  /** Oldest first. Never rejects. */
  list(slot: SlotName): Promise<readonly Revision[]>;
  /** Says who wrote the text with this resource version, before or after a pass has read it. */
  attribute(slot: SlotName, resourceVersion: string, author: Author): void;
  /** Another program that declares the slot and would undo an undo. Default: there is none. */
  managerOf?(slot: SlotName): Promise<string | undefined>;
  /** The commit of this program that brought the present text, if it is known. */
  commitOf?(slot: SlotName): string | undefined;
}

/** Who edited a text that did not come through the API. */
export const UNKNOWN_AUTHOR: Author = { who: 'file' };
