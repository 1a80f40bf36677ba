/** Format of image models: safetensors with companions, or a workflow. `.ckpt`, which can run code, is not read. */
import type { ModelFormat, ModelReading, ModelFiles } from '../provider.ts';
import { unusable } from '../provider.ts';
import { FAMILIES, FAMILY_TITLES, type FamilyName } from './decide/image-families.ts';
import * as models from './decide/image-model.ts';
import { WORKFLOW_ENDING, keepWorkflow, MOST_WORKFLOW_BYTES, readUserWorkflow, type NamedFile } from './decide/user-workflow.ts';
import type { ModelId } from '../../schema/words/names.ts';

export const imageFormat: ModelFormat = {
  kind: 'image',
  recognize({ name, names }) {
    if (names !== undefined) return undefined;
    if (name.endsWith(WORKFLOW_ENDING) && name.length > WORKFLOW_ENDING.length) return 'model';
    if (!/\.safetensors$/i.test(name)) return undefined;
    return models.isCompanionName(name) ? 'part' : 'model';
  },
  // Workflows are built here, not in the server.
  mustBeRead: (name) => name.endsWith(WORKFLOW_ENDING),
  contentsFrom(stated, files) {
    const named = models.imageModelNamed(files);
    if (named === undefined) return stated;
    return models.imageModel({ provider: 'image', contents: stated }) === undefined ? { ...stated, ...models.contentsOf(named) } : stated;
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
    const names = await files.names();
    const model = models.readImageModel(header, name, names);
    if (model === undefined) {
      if (models.isLora(header))
        return unusable(`The model file "${name}" of "${id}" is a LoRA: put it beside a model, and name it in "loras" of a request`);
      return unusable(`The model file "${name}" of "${id}" has no workflow in this version: choose a model of ${FAMILY_TITLES}`);
    }
    const beside = await Promise.all(Object.values(model.companions ?? {}).map(async (each) => files.sizeOf(each)));
    const loras = await lorasAmong(names, name, files);
    const largestBytes = FAMILIES[model.family].minDeviceBytes === undefined ? Math.max(sizeBytes, ...beside) : undefined;
    return {
      kind: 'model',
      sizeBytes: beside.reduce((sum, bytes) => sum + bytes, sizeBytes),
      contents: models.contentsOf({ ...model, ...(loras.length === 0 ? {} : { loras }), largestBytes }),
      family: FAMILIES[model.family].title,
    };
  },
};

async function readHeader(files: ModelFiles, name: string): Promise<models.SafetensorsHeader | undefined> {
  const length = models.headerBytesOf(await files.read(name, 0, models.LENGTH_BYTES));
  if (length === undefined) return undefined;
  const text = await files.read(name, models.LENGTH_BYTES, length);
  return text.length < length ? undefined : models.parseHeader(text);
}

/** Whoever keeps more has directories for them. */
const MOST_LORAS = 64;

async function lorasAmong(names: readonly string[], own: string, files: ModelFiles): Promise<readonly string[]> {
  const candidates = names.filter((name) => name !== own && /\.safetensors$/i.test(name) && !models.isCompanionName(name));
  const loras: string[] = [];
  for (const name of candidates.toSorted().slice(0, MOST_LORAS)) {
    const header = await readHeader(files, name).catch(() => undefined);
    if (header !== undefined && models.isLora(header) && models.isFileName(name)) loras.push(name);
  }
  return loras;
}

interface FoundFile extends NamedFile {
  readonly path: string;
  readonly listed: string;
  readonly sizeBytes: number;
}

async function readWorkflowModel(id: ModelId, name: string, files: ModelFiles): Promise<ModelReading> {
  const refuse = (problem: string): ModelReading => unusable(`The workflow "${id}" ${problem}`);
  const bytes = await files.sizeOf(name);
  if (bytes > MOST_WORKFLOW_BYTES)
    return refuse(`has ${bytes} bytes: remove what it does not need, since at most ${MOST_WORKFLOW_BYTES} bytes are read`);
  const reading = readUserWorkflow(new TextDecoder().decode(await files.read(name, 0, MOST_WORKFLOW_BYTES)));
  if (!reading.ok) return refuse(reading.problem);
  const found: FoundFile[] = [];
  for (const file of reading.read.files) {
    const each = await findFile(id, file, files);
    if (each === undefined)
      return refuse(
        `loads the file "${file.name.slice(0, 100)}", which is not in the model store: put it beside the workflow, or write its path below "${rootOf(id)}"`,
      );
    found.push(each);
  }
  const families = await Promise.all(found.map(async ({ path }) => familyOf(path, files)));
  const needs = (name: FamilyName): number => FAMILIES[name].minDeviceBytes ?? 0;
  const [family] = families.flatMap((each) => each ?? []).toSorted((a, b) => needs(b) - needs(a));
  const nameOf = ({ node, input, name: own }: NamedFile): string =>
    found.find((each) => each.node === node && each.input === input)?.listed ?? own;
  const sizes = new Map(found.map(({ path, sizeBytes }) => [path, sizeBytes]));
  return {
    kind: 'model',
    sizeBytes: sizes.values().reduce((sum, each) => sum + each, bytes),
    contents: { workflow: keepWorkflow(name.slice(0, -WORKFLOW_ENDING.length), reading.read, nameOf, family) },
    family: family === undefined ? 'workflow' : `${FAMILIES[family].title} (workflow)`,
  };
}

const rootOf = (id: ModelId): string => models.placeOf(`/${id}`).directory.slice(1);

async function findFile(id: ModelId, file: NamedFile, files: ModelFiles): Promise<FoundFile | undefined> {
  const own = models.placeOf(`/${id}`).name;
  const up = '../'.repeat(own.split('/').length - 1);
  const places = [
    { path: file.name, listed: models.besideCheckpoint(own, file.name) },
    { path: up + file.name, listed: file.name },
  ];
  for (const { path, listed } of places) {
    const sizeBytes = await files.sizeOf(path).catch(() => undefined);
    if (sizeBytes !== undefined) return { ...file, path, listed, sizeBytes };
  }
  return undefined;
}

async function familyOf(path: string, files: ModelFiles): Promise<FamilyName | undefined> {
  const header = await readHeader(files, path);
  return header === undefined ? undefined : models.readImageModel(header, path.slice(path.lastIndexOf('/') + 1), [])?.family;
}
