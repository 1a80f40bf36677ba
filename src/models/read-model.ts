/** Reads one model in the store: whether it exists and is complete, and the facts in its header. */
import { open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ModelFacts } from '../providers/provider.ts';
import type { ModelId } from '../schema/names.ts';
import { parseGgufHeader, type GgufHeader } from './decide/parse-gguf-header.ts';
import { isProjector, modelFacts, projectorFor, shardNames } from './decide/model-facts.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';

export type ModelRead =
  | { readonly kind: 'present'; readonly facts: ModelFacts }
  | { readonly kind: 'absent' }
  /** The file exists but cannot be used; the message says why and what to do. */
  | { readonly kind: 'unusable'; readonly message: string };

type Shard =
  | { readonly ok: true; readonly header: GgufHeader; readonly sizeBytes: number }
  /** `problem` continues the sentence "The model file …". */
  | { readonly ok: false; readonly problem: string };

export interface ModelReader {
  /** `file` is relative to the root of the store. */
  read(id: ModelId, file: string): Promise<ModelRead>;
}

/** Most headers fit into the first step, one with a vocabulary of 150,000 tokens into the third. No header is longer than the last. */
const READ_STEPS_BYTES = [2 ** 18, 2 ** 22, 2 ** 24, 2 ** 26, 2 ** 28];
const MAX_CACHED = 512;
const WAIT_OR_RETRY = 'wait until it is copied, or get it again';

export function createModelReader(root: string): ModelReader {
  const cache = new Map<string, Shard>();

  async function readShard(file: string): Promise<Shard> {
    const { size, mtimeMs, ino } = await stat(file);
    const key = `${file}\0${ino}\0${mtimeMs}\0${size}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const shard = await readHeader(file, size);
    const oldest = cache.keys().next().value;
    if (cache.size >= MAX_CACHED && oldest !== undefined) cache.delete(oldest);
    cache.set(key, shard);
    return shard;
  }

  return {
    async read(id, file) {
      const located = await locate(root, file);
      if (located.kind !== 'file') return located;
      const directory = path.dirname(located.path);
      const name = path.basename(located.path);
      if (!/\.gguf$/i.test(name)) {
        const { size } = await stat(located.path);
        return { kind: 'present', facts: { id, hostPath: located.path, sizeBytes: size } };
      }
      const headers: GgufHeader[] = [];
      let sizeBytes = 0;
      for (const shardName of shardNames(name)) {
        const shard = await readShard(path.join(directory, shardName)).catch((error: unknown) =>
          refuse(`cannot be read: ${problemOf(error)}`),
        );
        if (!shard.ok) return unusable(`The model file "${shardName}" of "${id}" ${shard.problem}`);
        headers.push(shard.header);
        sizeBytes += shard.sizeBytes;
      }
      const [first] = headers;
      if (first !== undefined && isProjector(first))
        return unusable(`"${id}" is a vision projector, not a model: use the model that it belongs to`);
      const projector = projectorFor(name, await readdir(directory).catch(() => []));
      const projectorPath = projector === undefined ? undefined : path.join(directory, projector);
      return { kind: 'present', facts: modelFacts({ id, hostPath: located.path, headers, sizeBytes, projectorPath }) };
    },
  };
}

type Located = { readonly kind: 'file'; readonly path: string } | Exclude<ModelRead, { readonly kind: 'present' }>;

/**
 * Resolves links within the store; the server gets their target. A link that leaves the store is refused, because a container sees
 * only the store, and because an id must not give access to other files of the host.
 */
async function locate(root: string, file: string): Promise<Located> {
  try {
    const realRoot = await realpath(root);
    const real = await realpath(path.join(root, file));
    const inside = path.relative(realRoot, real);
    if (inside.startsWith('..') || path.isAbsolute(inside)) {
      return unusable(
        `"${file}" links to a file outside the model store: copy or hard-link the model into it, or mount its directory there`,
      );
    }
    const facts = await stat(real);
    if (facts.isDirectory()) return unusable(`"${file}" is a directory: use the name of a model file in it`);
    if (!facts.isFile()) return unusable(`"${file}" is not a regular file`);
    return { kind: 'file', path: path.join(root, inside) };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
    return unusable(`"${file}" cannot be read: ${problemOf(error)}`);
  }
}

async function readHeader(file: string, sizeBytes: number): Promise<Shard> {
  const handle = await open(file, 'r');
  try {
    for (const step of READ_STEPS_BYTES) {
      const length = Math.min(step, sizeBytes);
      const buffer = Buffer.allocUnsafe(length);
      const { bytesRead } = await handle.read(buffer, 0, length, 0);
      const parsed = parseGgufHeader(buffer.subarray(0, bytesRead));
      if (parsed.kind === 'header') return checkComplete(parsed.header, sizeBytes);
      if (parsed.kind === 'corrupt') return refuse(`is damaged or not a GGUF file: ${parsed.message}; get it again`);
      if (length === sizeBytes) return refuse(`is incomplete: it ends within its header, after ${sizeBytes} bytes; ${WAIT_OR_RETRY}`);
    }
    return refuse('is damaged: its header is too long; get it again');
  } finally {
    await handle.close();
  }
}

function checkComplete(header: GgufHeader, sizeBytes: number): Shard {
  if (sizeBytes >= header.fileBytes) return { ok: true, header, sizeBytes };
  return refuse(`is incomplete: it has ${sizeBytes} of ${header.fileBytes} bytes; ${WAIT_OR_RETRY}`);
}

function refuse(problem: string): Shard {
  return { ok: false, problem };
}

function unusable(message: string): Exclude<Located, { readonly kind: 'file' }> {
  return { kind: 'unusable', message };
}

function problemOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES') return 'the service has no permission; change the permissions of the file';
  if (code === 'ENOENT') return 'it does not exist';
  return messageOf(error);
}
