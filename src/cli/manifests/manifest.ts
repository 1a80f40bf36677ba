/** A slot as a file or standard input describes it. */
import type { SlotName } from '../../schema/words/names.ts';
import type { SpecProblem } from '../../schema/slot/spec-problem.ts';

export interface Manifest {
  readonly name: SlotName;
  /** Keys in camelCase. Not valid if there are problems. */
  readonly document: Readonly<Record<string, unknown>>;
  /** The file's path, for messages. */
  readonly file: string;
  /** What users write into the metadata of a resource besides the name. */
  readonly metadata: ManifestMetadata;
  /** Keys of the resource that a conversion loses. Fields that only the API server writes do not count. */
  readonly dropped: readonly string[];
}

export interface ManifestMetadata {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface Manifests {
  readonly slots: readonly Manifest[];
  /** Each with its file and, if known, line and column. */
  readonly problems: readonly SpecProblem[];
  /** One line for each object of another kind. */
  readonly skipped: readonly string[];
}
