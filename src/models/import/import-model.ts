/**
 * Takes a model of another tool, or any GGUF file, into the store: by hard link or reflink, which take no room, else by copy. Every byte is hashed before the model
 * appears, so that a damaged download of another tool is noticed here. A hard link shares its content with the original; both tools only ever replace files.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ModelFormat } from '../../providers/provider.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { ModelId } from '../../schema/words/names.ts';
import type { ForeignFile } from '../decide/foreign-models.ts';
import type { Pin } from '../decide/pin.ts';
import type { Pins } from '../pins.ts';
import { failUnlessWritable } from '../pull/check-writable.ts';
import { storageFailure } from '../pull/storage-failure.ts';
import { takeBytes, type TakeMethod } from '../pull/take-bytes.ts';
import { hashFile } from '../pull/hash-file.ts';
import { createModelReader } from '../read-model.ts';
import type { FoundModel } from './find-foreign-models.ts';

export interface ImportOptions {
  /** Absolute path of the store. */
  readonly root: string;
  readonly pins: Pins;
  readonly formats: readonly ModelFormat[];
  readonly onFile: (name: string) => void;
}

export interface ImportedModel {
  readonly id: ModelId;
  /** `present`: the store had it already. */
  readonly how: TakeMethod | 'present';
  readonly sizeBytes: number;
}

export async function importModel(
  { root, pins, formats, onFile }: ImportOptions,
  model: FoundModel,
  signal: AbortSignal,
): Promise<Result<ImportedModel>> {
  const [first] = model.files;
  const id = ModelId.safeParse(`${model.directory}/${first.name}`);
  if (!id.success) return fail('stalled', 'ModelUnusable', `Rename "${first.path}": its name is too long for the model store`);
  const taken: Pin['files'] = [];
  let how: TakeMethod | 'present' = 'present';
  try {
    for (const file of model.files) {
      onFile(file.name);
      const target = path.join(root, model.directory, file.name);
      const one = await takeFile(path.resolve(model.root, file.path), target, file, signal);
      if (!one.ok) return one;
      if (one.value.how !== 'present') how = one.value.how;
      const { sha256, sizeBytes } = one.value;
      taken.push({ path: `${model.directory}/${file.name}`, sha256, sizeBytes, from: { kind: 'import', tool: model.tool } });
    }
    const read = await createModelReader(root, formats).read(id.data, id.data);
    if (read.kind !== 'present') {
      for (const file of taken) if (how !== 'present') await rm(path.join(root, file.path), { force: true });
      return fail('stalled', 'ModelUnusable', read.kind === 'unusable' ? read.message : `The file of "${id.data}" has disappeared`);
    }
    await pins.write({ version: 1, id: id.data, files: taken, isGated: false });
    return ok({ id: id.data, how, sizeBytes: taken.reduce((sum, file) => sum + file.sizeBytes, 0) });
  } catch (error) {
    if (signal.aborted) throw error;
    return { ok: false, failure: storageFailure(root, error) };
  }
}

interface TakenFile {
  readonly how: TakeMethod | 'present';
  /** Hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

async function takeFile(from: string, target: string, { sha256: expected }: ForeignFile, signal: AbortSignal): Promise<Result<TakenFile>> {
  // The tools link to their blobs; a link into a directory of another user would end there.
  const source = await realpath(from);
  const { size, ino, dev } = await stat(source);
  const there = await stat(target).catch(() => undefined);
  const isSame = there?.ino === ino && there.dev === dev;
  const part = `${target}.${randomUUID()}.import.part`;
  await failUnlessWritable(path.dirname(target));
  await mkdir(path.dirname(target), { recursive: true });
  try {
    const how = isSame ? 'present' : await takeBytes(source, part, size);
    if (typeof how !== 'string') return how;
    const sha256 = (await hashFile(isSame ? target : part, signal)).digest('hex');
    if (expected !== undefined && sha256 !== expected) {
      const message = `Download "${from}" again with its own tool: its SHA-256 is "${sha256}", not "${expected}"`;
      return fail('stalled', 'ModelHashMismatch', message);
    }
    if (there !== undefined && !isSame && (await hashFile(target, signal)).digest('hex') === sha256) {
      return ok({ how: 'present', sha256, sizeBytes: size });
    }
    if (!isSame) await rename(part, target);
    return ok({ how, sha256, sizeBytes: size });
  } finally {
    await rm(part, { force: true });
  }
}
