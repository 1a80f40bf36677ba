/** Reads a model in the store: whether it is usable, and the facts that its provider finds in its files. */
import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Sized, ModelFormat, StoreEntry } from '../providers/provider.ts';
import type { ModelId } from '../schema/words/names.ts';
import type { ProviderKind } from '../schema/slot/provider-kinds.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { openModelFiles, UnreadableFile, isInside, realPlace } from './model-file-access.ts';
import type { MountedModels } from './decide/workflows-mount.ts';

type ModelRead =
  | { readonly kind: 'present'; readonly facts: Sized }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly message: string };

type Remembered = Readonly<{ read: ModelRead; isUnchanged: () => Promise<boolean> }>;

const MAX_REMEMBERED = 4096;

export function createModelReader(root: string, formats: readonly ModelFormat[], mounts: readonly MountedModels[] = []) {
  const remembered = new Map<string, Remembered>();

  async function readWith(format: ModelFormat, id: ModelId, { hostPath, entry }: Located): Promise<ModelRead> {
    const key = `${format.kind}\0${id}\0${hostPath}`;
    const known = remembered.get(key);
    if (known !== undefined && (await known.isUnchanged())) return known.read;
    remembered.delete(key);
    const files = openModelFiles(root, entry.names === undefined ? path.dirname(hostPath) : hostPath, mounts);
    try {
      const reading = await format.read({ id, entry }, files);
      // A gateway sends the model with each request, so its server need not start again after a change.
      const version = format.mustBeRead?.(path.basename(id)) === true ? undefined : files.version();
      const read = reading.kind === 'unusable' ? reading : present({ id, hostPath, provider: format.kind, version, ...reading });
      const oldest = remembered.keys().next().value;
      if (remembered.size >= MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
      remembered.set(key, { read, isUnchanged: files.isUnchanged });
      return read;
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      return unusable(`The model file "${error.file}" of "${id}" cannot be read: ${problemOf(error.cause)}`);
    }
  }

  return {
    /** `file`: relative to the store. `provider`: as stated by the catalogue. */
    async read(id: ModelId, file: string, provider?: ProviderKind): Promise<ModelRead> {
      const located = await locate(root, mounts, file);
      if ('kind' in located) return located;
      const { entry, hostPath, sizeBytes } = located;
      const read = await readByFormat(formats, { entry, provider }, (format) => readWith(format, id, located));
      if (read !== undefined) return read;
      if (entry.names !== undefined) return unusable(`"${file}" is a directory; use the name of a model file in it`);
      return { kind: 'present', facts: { id, hostPath, sizeBytes } };
    },
  };
}

function present({ id, hostPath, provider, sizeBytes, contents, family, version }: Sized): ModelRead {
  return { kind: 'present', facts: { id, hostPath, sizeBytes, provider, contents, version, ...(family === undefined ? {} : { family }) } };
}

type Located = Readonly<{ hostPath: string; entry: StoreEntry; sizeBytes: number }>;

/** A container sees only the store, and an id must not give access to other files: links out of it are refused. */
async function locate(
  root: string,
  mounts: readonly MountedModels[],
  file: string,
): Promise<Located | Exclude<ModelRead, { readonly kind: 'present' }>> {
  try {
    const shown = path.join(root, file);
    const { base, file: place, isMounted } = realPlace(root, mounts, shown);
    const realBase = await realpath(base);
    const real = await realpath(place);
    if (!isInside(realBase, real)) {
      const problem = `"${file}" links to a file outside the model store`;
      return unusable(`${problem}; copy or hard-link the model into it, or mount its directory there`);
    }
    const facts = await stat(real);
    const name = path.basename(real);
    const hostPath = isMounted ? shown : path.join(root, path.relative(realBase, real));
    if (facts.isDirectory()) return { hostPath, sizeBytes: 0, entry: { name, names: await readdir(real) } };
    if (!facts.isFile()) return unusable(`"${file}" is not a regular file`);
    return { hostPath, sizeBytes: facts.size, entry: { name } };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
    return unusable(`"${file}" cannot be read: ${problemOf(error)}`);
  }
}

const unusable = (message: string): Extract<ModelRead, { readonly kind: 'unusable' }> => ({ kind: 'unusable', message });

function problemOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES') return 'the service has no permission; change the permissions of the file';
  if (code === 'ENOENT') return 'it does not exist';
  return messageOf(error);
}

/** Tries `provider` if it recognizes the files, otherwise each that does. The last refusal, or undefined. */
export async function readByFormat<Read extends { readonly kind: string }>(
  formats: readonly ModelFormat[],
  { entry, provider }: { readonly entry: StoreEntry; readonly provider?: ProviderKind | undefined },
  read: (format: ModelFormat) => Promise<Read>,
): Promise<Read | undefined> {
  const knowing = formats.filter((each) => each.recognize(entry) !== undefined);
  const stated = knowing.find(({ kind }) => kind === provider);
  let refusal: Read | undefined;
  for (const format of stated === undefined ? knowing : [stated]) {
    const found = await read(format);
    if (found.kind !== 'unusable') return found;
    refusal = found;
  }
  return refusal;
}
