/** Models that programs bring themselves. */
import type { ModelId } from '../schema/words/names.ts';

/** Model of a program or its toolbox image: named there, without a file in the store. */
export interface OwnModel {
  readonly id: ModelId;
  readonly sizeBytes: number;
  /** Like `ModelContents`: plain data that only the provider reads. */
  readonly contents: Readonly<Record<string, unknown>>;
  readonly family?: string | undefined;
  /** Reason why it cannot be served, and the fix. Undefined: it can. */
  readonly missing?: string | undefined;
}

export interface OwnModels {
  /** Arguments with which the program prints its list and exits, also on a machine without its device. */
  readonly listArguments: readonly string[];
  /** Undefined if the output is not a list. Pure. */
  parse(output: string): readonly OwnModel[] | undefined;
}
