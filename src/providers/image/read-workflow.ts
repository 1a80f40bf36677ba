/** Reads a user's workflow and looks for the files of models that it names: beside it, or where the server searches. */
import type { ModelFiles, ModelReading } from '../provider.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { FAMILIES, type FamilyName } from './decide/image-families.ts';
import { besideCheckpoint, placeOf, readImageModel } from './decide/image-model.ts';
import { keepWorkflow, MOST_WORKFLOW_BYTES, readUserWorkflow, WORKFLOW_ENDING, type NamedFile } from './decide/user-workflow.ts';
import { readHeader } from './read-header.ts';

interface FoundFile extends NamedFile {
  /** Relative to the directory of the workflow. */
  readonly path: string;
  /** As the server lists it. */
  readonly listed: string;
  readonly sizeBytes: number;
}

export async function readWorkflowModel(id: ModelId, name: string, files: ModelFiles): Promise<ModelReading> {
  const refuse = (problem: string): ModelReading => ({ kind: 'unusable', message: `The workflow "${id}" ${problem}` });
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
  const [family] = families.flatMap((each) => each ?? []).toSorted((a, b) => FAMILIES[b].minDeviceBytes - FAMILIES[a].minDeviceBytes);
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

/** As people see it, below the model store. */
function rootOf(id: ModelId): string {
  return placeOf(`/${id}`).directory.slice(1);
}

async function findFile(id: ModelId, file: NamedFile, files: ModelFiles): Promise<FoundFile | undefined> {
  const own = placeOf(`/${id}`).name;
  const up = '../'.repeat(own.split('/').length - 1);
  const places = [
    { path: file.name, listed: besideCheckpoint(own, file.name) },
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
  return header === undefined ? undefined : readImageModel(header, path.slice(path.lastIndexOf('/') + 1), [])?.family;
}
