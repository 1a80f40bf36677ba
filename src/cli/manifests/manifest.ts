/** A slot as a file or standard input describes it. */
import type { SlotName } from '../../schema/names.ts';
import type { SpecProblem } from '../../schema/spec-problem.ts';

export interface Manifest {
  readonly name: SlotName;
  /** Keys in camelCase; unchecked when there are problems. */
  readonly document: Readonly<Record<string, unknown>>;
  /** What messages call it: the file's path. */
  readonly file: string;
  /** Of a resource: what people write into its metadata beside the name. */
  readonly metadata: ManifestMetadata;
  /** What else a resource says that neither form keeps. What only the API server writes does not count. */
  readonly dropped: readonly string[];
}

export interface ManifestMetadata {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface Manifests {
  readonly slots: readonly Manifest[];
  /** Each with file and, where it is known, line and column. */
  readonly problems: readonly SpecProblem[];
  /** A line for each object of another kind. */
  readonly skipped: readonly string[];
}
