/** Models that programs bring themselves. Types only. */
import type { ModelId } from '../schema/words/names.ts';

/** A model that comes with a program or its toolbox image: it has a name there, and no file in the store. */
export interface OwnModel {
  readonly id: ModelId;
  readonly sizeBytes: number;
  /** As `ModelContents`: plain data that only the provider reads. */
  readonly contents: Readonly<Record<string, unknown>>;
  readonly family?: string | undefined;
  /** Why it cannot be served although the program knows it, and what to do: a message. Undefined: it can. */
  readonly missing?: string | undefined;
}

/** How a program says which models it brings itself. */
export interface OwnModels {
  /** With these arguments, the program prints its list and ends, also on a machine without its device. */
  readonly listArguments: readonly string[];
  /** Undefined if the output is no list. Pure. */
  parse(output: string): readonly OwnModel[] | undefined;
}
