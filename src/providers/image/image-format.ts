/** How image models look on disk: a safetensors file, and for FLUX models the text encoders and the decoder beside it; or a workflow that a user has saved. Files that can contain programs (`.ckpt`) are not read. */
import type { ModelFormat, ModelReading } from '../provider.ts';
import { FAMILIES } from './decide/image-families.ts';
import { contentsOf, imageModel, imageModelNamed, isCompanionName, readImageModel } from './decide/image-model.ts';
import { WORKFLOW_ENDING } from './decide/user-workflow.ts';
import { readHeader } from './read-header.ts';
import { readWorkflowModel } from './read-workflow.ts';

export const imageFormat: ModelFormat = {
  kind: 'image',
  recognize({ name, names }) {
    if (names !== undefined) return undefined;
    if (name.endsWith(WORKFLOW_ENDING) && name.length > WORKFLOW_ENDING.length) return 'model';
    if (!/\.safetensors$/i.test(name)) return undefined;
    return isCompanionName(name) ? 'part' : 'model';
  },
  filesOf: (name) => [name],
  // Requests are made into workflows here, and not in the server.
  mustBeRead: (name) => name.endsWith(WORKFLOW_ENDING),
  contentsFrom(stated, files) {
    const named = imageModelNamed(files);
    if (named === undefined) return stated;
    return imageModel({ provider: 'image', contents: stated }) === undefined ? { ...stated, ...contentsOf(named) } : stated;
  },
  async read({ id, entry: { name } }, files): Promise<ModelReading> {
    if (name.endsWith(WORKFLOW_ENDING)) return readWorkflowModel(id, name, files);
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

function unusable(message: string): ModelReading {
  return { kind: 'unusable', message };
}
