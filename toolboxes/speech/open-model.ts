/** Reads which model a directory contains, and checks its files before the engine loads them. */
import { open, readdir, stat, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { describeModel, describeWhisperFile, type ModelFacts } from './decide/describe-model.ts';
import { findBundle, type BundleFile } from './decide/find-bundle.ts';
import { GGML_HEAD_BYTES, readGgmlHead } from './decide/read-ggml.ts';
import type { Task } from './decide/parse-flags.ts';
import { walkOnnx } from './decide/read-onnx.ts';

/** The format that ONNX Runtime has besides ONNX begins with the length of a table, and this. */
const ORT_MAGIC = 'ORTM';

/** Throws an error with a message for the reader if it contains no model that can be loaded. */
export async function openModel(directory: string, task: Task): Promise<ModelFacts> {
  if ((await stat(directory).catch(() => undefined))?.isFile() === true) return openFile(directory, task);
  const found = findBundle(task, await listFiles(directory));
  if (!found.ok) throw new Error(found.why);
  const { bundle } = found;
  const metadata: Record<string, Readonly<Record<string, string>>> = {};
  const sizes: Record<string, number> = {};
  for (const [role, name] of Object.entries(bundle.graphs)) metadata[role] = await readGraph(directory, name);
  for (const [role, name] of Object.entries(bundle.files)) {
    sizes[role] = (await stat(path.join(directory, name))).size;
    if (sizes[role] === 0) throw new Error(`Download "${name}" again: the file is empty`);
  }
  const described = describeModel({ bundle, name: path.basename(path.resolve(directory)), metadata, sizes });
  if (!described.ok) throw new Error(described.why);
  return described.facts;
}

/** The only models of one file are those of whisper.cpp. */
async function openFile(name: string, task: Task): Promise<ModelFacts> {
  const other = 'Choose the directory of the model: this is a file';
  if (task !== 'stt') throw new Error(other);
  const file = await open(name, 'r');
  try {
    const head = readGgmlHead(await readPart(file, 0, GGML_HEAD_BYTES), (await file.stat()).size);
    if (!head.ok) throw new Error(`${other}, and ${head.why}`);
    return describeWhisperFile(head.model);
  } finally {
    await file.close();
  }
}

async function listFiles(directory: string): Promise<readonly BundleFile[]> {
  const entries = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    throw new Error(
      error.code === 'ENOTDIR'
        ? 'Choose the directory of the model: this is a file'
        : `Choose a directory that can be read: ${error.message}`,
    );
  });
  return Promise.all(
    entries.map(async (name) => {
      // A link counts as what it leads to.
      const facts = await stat(path.join(directory, name)).catch(() => undefined);
      return { name, size: facts?.size ?? 0, directory: facts?.isDirectory() ?? false };
    }),
  );
}

async function readGraph(directory: string, name: string): Promise<Readonly<Record<string, string>>> {
  const file = await open(path.join(directory, name), 'r');
  try {
    const { size } = await file.stat();
    if ((await readPart(file, 4, 4)).toString('latin1') === ORT_MAGIC) return {};
    const walk = walkOnnx(size);
    let step = walk.next();
    while (step.value.kind === 'read') step = walk.next(await readPart(file, step.value.at, step.value.length));
    if (step.value.kind === 'damaged') throw new Error(`Download "${name}" again: ${step.value.why}`);
    return step.value.metadata;
  } finally {
    await file.close();
  }
}

async function readPart(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}
