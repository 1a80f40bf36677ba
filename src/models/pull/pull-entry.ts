/** Gets the files of a catalogue entry into a store: downloads what has an address, writes what is generated. Each file appears whole or not at all. */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import type { ModelId } from '../../schema/names.ts';
import type { CatalogueEntry, CatalogueFile } from '../catalogue.ts';
import { encodeDemoModel } from '../demo/demo-models.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

export interface PullEntry {
  /** Of the store; absolute. */
  readonly root: string;
  readonly id: ModelId;
  readonly entry: CatalogueEntry | undefined;
  readonly onProgress: (progress: Progress) => void;
}

export async function pullEntry({ root, id, entry, onProgress }: PullEntry, signal: AbortSignal): Promise<Result<void>> {
  if (entry === undefined) return fail('stalled', 'ModelMissing', `The catalogue has no model "${id}": put its file into "${root}"`);
  for (const file of entry.files) {
    const target = targetOf(root, id, file);
    if (!target.ok) return target;
    const done = await pullEntryFile(file, { target: target.value, onProgress }, signal);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

/** Where a file of the catalogue lies in this store. */
export function targetOf(root: string, id: ModelId, file: CatalogueFile): Result<string> {
  const target = path.resolve(root, file.path);
  if (target.startsWith(path.resolve(root) + path.sep)) return ok(target);
  return fail('stalled', 'CatalogueInvalid', `The catalogue entry "${id}" has a file outside the store: "${file.path}"`);
}

/** `part`: where an unfinished download lies; see `PullFile`. */
export async function pullEntryFile(
  file: CatalogueFile,
  to: { readonly target: string; readonly part?: string; readonly onProgress: (progress: Progress) => void },
  signal: AbortSignal,
): Promise<Result<void>> {
  if (file.from.kind === 'generated') return generate(file.from.model, to.target);
  const { url } = file.from;
  if (file.sha256 === undefined)
    return fail('stalled', 'CatalogueInvalid', `The catalogue has no SHA-256 for "${file.path}", so that it cannot be trusted`);
  const { sha256, sizeBytes } = file;
  // loaded with the first download: undici is large
  const { pullFile } = await import('./pull-file.ts');
  return pullFile({ ...to, url, sha256, ...(sizeBytes === undefined ? {} : { sizeBytes }) }, signal);
}

async function generate(model: Parameters<typeof encodeDemoModel>[0], target: string): Promise<Result<void>> {
  // others may write the same file at the same time
  const part = `${target}.${randomUUID()}.part`;
  try {
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(part, encodeDemoModel(model));
    await rename(part, target);
    return ok(undefined);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    return notWritten(path.dirname(target), error);
  }
}

/** Of a failed write below `directory`, in the words of who can change it. */
export function notWritten(directory: string, error: unknown): Result<never> {
  const code = codeOf(error);
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') {
    const user = process.getuid?.() ?? 'of this process';
    const message = `Make "${directory}" writable for user ${user}, or put the model there: it is absent or damaged, and fetching it needs to write (${code})`;
    return fail('stalled', 'ModelStoreReadOnly', message);
  }
  const why = messageOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') return fail('stalled', 'DiskFull', `Make room for the model in "${directory}": ${why}`);
  return fail('retry', 'ModelPullFailed', `The model cannot be written into "${directory}": ${why}`);
}
