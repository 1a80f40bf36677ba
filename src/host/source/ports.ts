/** What keeps a tree of configuration files with revisions: a repository of git; later perhaps a registry (`oci:`). */
import type { SourceReason } from '../../schema/status/config-source.ts';

export interface Commit {
  readonly commit: string;
  readonly subject: string;
  readonly author: string;
  /** Unix milliseconds. */
  readonly at: number;
}

export interface SourceProblem {
  readonly reason: SourceReason;
  readonly message: string;
}

export type Sourced<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: SourceProblem };

/** An entry of the tree. `kind`: files are regular; links and submodules are never read. */
export interface TreeEntry {
  /** Relative, with `/`. */
  readonly path: string;
  readonly kind: 'file' | 'link' | 'submodule';
  /** Opaque; the same for the same content. */
  readonly id: string;
  readonly sizeBytes: number;
}

export interface TreeSource {
  /** Fetches the newest revision. Never rejects, also if the signal aborts. */
  fetch(signal: AbortSignal): Promise<Sourced<Commit>>;
  /** Checks who has signed the revision, if anybody has to. */
  verify(commit: string, signal: AbortSignal): Promise<Sourced<undefined>>;
  /** Lists what is below the names in `within`, which are at the root of the configuration. */
  list(commit: string, within: readonly string[], signal: AbortSignal): Promise<Sourced<readonly TreeEntry[]>>;
  /** Reads contents, in the order of `ids`. */
  read(ids: readonly string[], signal: AbortSignal): Promise<Sourced<readonly Buffer[]>>;
}
