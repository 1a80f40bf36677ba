/** Reads the files of a model for sherpa-onnx as far as they can be checked: each network to its end, and what it says about itself. */
import type { ModelFiles } from '../provider.ts';
import type { Bundle } from './decide/bundle.ts';
import { readOnnx } from './read-onnx.ts';

export type BundleReading =
  | {
      readonly ok: true;
      /** Of everything that is loaded. */
      readonly sizeBytes: number;
      /** Of all networks together; a later one has the last word. */
      readonly metadata: ReadonlyMap<string, string>;
      readonly sizes: ReadonlyMap<string, number>;
    }
  | { readonly ok: false; readonly message: string };

/** Weights beside a network that is larger than 2 GiB: `encoder.weights`, `model.onnx.data`. */
const EXTERNAL_WEIGHTS = /\.(weights|data)$/;

export async function readBundle(id: string, bundle: Bundle, files: ModelFiles): Promise<BundleReading> {
  const sizes = new Map<string, number>();
  const metadata = new Map<string, string>();
  for (const name of bundle.networks) {
    const reading = await readOnnx(files, name);
    if (!reading.ok) return { ok: false, message: `The file "${name}" of "${id}" ${reading.problem}` };
    sizes.set(name, reading.sizeBytes);
    for (const [key, value] of reading.metadata) metadata.set(key, value);
  }
  const names = await files.names();
  for (const name of [...bundle.others, ...names.filter((each) => EXTERNAL_WEIGHTS.test(each))]) {
    const sizeBytes = await files.sizeOf(name);
    if (sizeBytes === 0) return { ok: false, message: `The file "${name}" of "${id}" is empty; wait until it is copied, or get it again` };
    sizes.set(name, sizeBytes);
  }
  return { ok: true, sizeBytes: sizes.values().reduce((sum, each) => sum + each, 0), metadata, sizes };
}
