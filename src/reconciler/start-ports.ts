/** What makes the next start quicker: prompts that outlive their servers, and files that are read ahead. */
import type { Endpoint, Sized } from '../providers/provider.ts';
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

/** A model whose files are read into the page cache, because a slot is about to start it. */
export interface NextModel {
  readonly slot: SlotName;
  readonly model: Sized;
}

/** How far that has come. */
export interface ReadAheadReport {
  readonly model: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
  /** The files were in the page cache already. */
  readonly wasCached?: true;
  /** Why it cannot be read. */
  readonly problem?: string;
}

export interface ReadAhead {
  /**
   * Reads these models one after the other, each once while it is listed, and stops reading what is no longer listed.
   * `onProgress` is called about once a second and at the end; `newBytes` came from the disk since the last call.
   * Never throws.
   */
  follow(models: readonly NextModel[], onProgress: (slot: SlotName, report: ReadAheadReport, newBytes: number) => void): void;
}

export interface Progress {
  readonly what: string;
  readonly doneBytes: number;
  readonly totalBytes?: number;
  /** Over the last seconds; undefined if that is not known. */
  readonly bytesPerSecond?: number;
}
