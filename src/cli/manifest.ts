/** A slot as a file or standard input describes it. */
import type { SlotName } from '../spec/names.ts';
import type { SpecProblem } from '../spec/spec-problem.ts';

export interface Manifest {
  readonly name: SlotName;
  /** Keys in camelCase; unchecked when there are problems. */
  readonly document: Readonly<Record<string, unknown>>;
  /** What messages call it: the file's path. */
  readonly file: string;
  /** Parts of a resource that a TOML file has no place for. */
  readonly dropped: readonly string[];
}

export interface Manifests {
  readonly slots: readonly Manifest[];
  /** Each with file and, where it is known, line and column. */
  readonly problems: readonly SpecProblem[];
}
