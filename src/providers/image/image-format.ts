/** How image models look on disk: a safetensors file, and for FLUX models the text encoders and the decoder beside it. Files that can contain programs (`.ckpt`) are not read. */
import type { ModelFiles, ModelFormat, ModelReading } from '../provider.ts';
import { FAMILIES } from './decide/image-families.ts';
import { contentsOf, imageModel, imageModelNamed, isCompanionName, readImageModel } from './decide/image-model.ts';
import { headerBytesOf, LENGTH_BYTES, parseHeader, type SafetensorsHeader } from './decide/safetensors-header.ts';

export const imageFormat: ModelFormat = {
  kind: 'image',
  recognize({ name, names }) {
    if (names !== undefined || !/\.safetensors$/i.test(name)) return undefined;
    return isCompanionName(name) ? 'part' : 'model';
  },
  filesOf: (name) => [name],
  contentsFrom(stated, files) {
    const named = imageModelNamed(files);
    if (named === undefined) return stated;
    return imageModel({ provider: 'image', contents: stated }) === undefined ? { ...stated, ...contentsOf(named) } : stated;
  },
  async read({ id, entry: { name } }, files): Promise<ModelReading> {
    const sizeBytes = await files.sizeOf(name);
    const header = await readHeader(files, name);
    if (header === undefined) return unusable(`The model file "${name}" of "${id}" is damaged or no safetensors file; get it again`);
    if (sizeBytes < header.fileBytes) {
      return unusable(
        `The model file "${name}" of "${id}" is incomplete: it has ${sizeBytes} of ${header.fileBytes} bytes; wait until it is copied, or get it again`,
      );
    }
    const model = readImageModel(header, name, await files.names());
    if (model === undefined) {
      const titles = Object.values(FAMILIES).map(({ title }) => title);
      return unusable(`The model file "${name}" of "${id}" has no workflow in this version: choose a model of ${titles.join(', ')}`);
    }
    const beside = await Promise.all(Object.values(model.companions ?? {}).map(async (each) => files.sizeOf(each)));
    return {
      kind: 'model',
      sizeBytes: beside.reduce((sum, bytes) => sum + bytes, sizeBytes),
      contents: contentsOf(model),
      family: FAMILIES[model.family].title,
    };
  },
};

async function readHeader(files: ModelFiles, name: string): Promise<SafetensorsHeader | undefined> {
  const length = headerBytesOf(await files.read(name, 0, LENGTH_BYTES));
  if (length === undefined) return undefined;
  const text = await files.read(name, LENGTH_BYTES, length);
  return text.length < length ? undefined : parseHeader(text);
}

function unusable(message: string): ModelReading {
  return { kind: 'unusable', message };
}
