/** The files of a model in memory, as a provider reads them. Counts what is read. */
import type { ModelFiles, StoreEntry } from '../../../src/providers/provider.ts';

/** A model as it is in a store: one file with what is beside it, or a directory. */
export interface SampleModel {
  readonly entry: StoreEntry;
  /** By name, in the directory of the model. */
  readonly files: Readonly<Record<string, Uint8Array>>;
}

export interface CountedFiles extends ModelFiles {
  readBytes(): number;
}

/** What a store rejects with, so that a test can tell it from a failure of the provider itself. */
export class NoSuchFile extends Error {}

export function filesOf({ files }: SampleModel): CountedFiles {
  let count = 0;
  const get = (name: string): Uint8Array => {
    const found = Object.hasOwn(files, name) ? files[name] : undefined;
    if (found === undefined) throw new NoSuchFile(`"${name}" is not there`);
    return found;
  };
  return {
    names: async () => Object.keys(files).toSorted((a, b) => (a < b ? -1 : 1)),
    sizeOf: async (name) => get(name).length,
    async read(name, offset, length) {
      const bytes = get(name).slice(offset, offset + length);
      count += bytes.length;
      return bytes;
    },
    readBytes: () => count,
  };
}
