/** Reads the header of a safetensors file through the access that a model has. */
import type { ModelFiles } from '../provider.ts';
import { headerBytesOf, LENGTH_BYTES, parseHeader, type SafetensorsHeader } from './decide/safetensors-header.ts';

/** Undefined if the file has none. */
export async function readHeader(files: ModelFiles, name: string): Promise<SafetensorsHeader | undefined> {
  const length = headerBytesOf(await files.read(name, 0, LENGTH_BYTES));
  if (length === undefined) return undefined;
  const text = await files.read(name, LENGTH_BYTES, length);
  return text.length < length ? undefined : parseHeader(text);
}
