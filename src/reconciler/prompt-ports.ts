/** Prompts that outlive the servers that have computed them, and the interface to what keeps them. */
import type { Endpoint } from '../providers/provider.ts';
import type { Revision, SlotName } from '../schema/words/names.ts';

/** A server whose prompts outlive it. */
export interface PromptServer {
  readonly slot: SlotName;
  /** The variable by which it knows where to save them. */
  readonly variable: string;
  readonly endpoint: Endpoint;
  readonly revision: Revision;
  /** What tells the files of models apart. */
  readonly modelFiles: string;
}

/** `usedAt`: when the last request ended, in monotonic milliseconds. `pauseMs`: default 0. */
export type SaveOptions = Readonly<{ budgetMs: number; usedAt: number; pauseMs?: number }>;

/** What became of the prompts of a server. */
export interface PromptReport {
  readonly direction: 'save' | 'restore';
  readonly tokens: number;
  readonly conversations: number;
  readonly tookMs: number;
  /** Why some were not kept, or not restored, as sentences. */
  readonly problems: readonly string[];
}

/**
 * Keeps what servers have computed of prompts beyond their end. No method rejects, and none takes much longer than its
 * budget.
 */
export interface PromptStore {
  /** Absolute host path; each slot has a directory in it. */
  readonly root: string;
  /** Makes the directory of a slot. Returns why that is not possible. */
  prepare(slot: SlotName): Promise<string | undefined>;
  /**
   * Undefined where there was nothing to keep: nothing has used the server since the last time, or that was less than
   * `pauseMs` ago.
   */
  save(server: PromptServer, when: SaveOptions, signal: AbortSignal): Promise<PromptReport | undefined>;
  /** Each file is offered once. Undefined where there was nothing to restore. */
  restore(server: PromptServer, budgetMs: number, signal: AbortSignal): Promise<PromptReport | undefined>;
  /** Deletes what belongs to other slots. */
  keepOnly(slots: ReadonlySet<SlotName>): void;
}
