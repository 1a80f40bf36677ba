/** Looks at one model in the store: whether it is there, whole and readable, and what its header says. */
import { open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ModelFacts } from '../providers/provider.ts';
import type { ModelId } from '../schema/names.ts';
import { readGgufHeader, type GgufHeader } from './decide/gguf-header.ts';
import { isProjector, modelFacts, projectorFor, shardNames } from './decide/model-facts.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';

export type ModelRead =
  | { readonly kind: 'present'; readonly facts: ModelFacts }
  | { readonly kind: 'absent' }
  /** There, but not to be used; the message says what is wrong and what to do. */
  | { readonly kind: 'unusable'; readonly message: string };

type HeaderResult = { readonly ok: true; readonly header: GgufHeader } | { readonly ok: false; readonly problem: string };

export interface ModelReader {
  /** `file` is relative to the store's root. */
  read(id: ModelId, file: string): Promise<ModelRead>;
}

/** Most headers end within the first; a vocabulary of 150,000 tokens within the third. No header is longer than the last. */
const READ_STEPS_BYTES = [2 ** 18, 2 ** 22, 2 ** 24, 2 ** 26, 2 ** 28];
const MAX_CACHED = 512;

export function createModelReader(root: string): ModelReader {
  const cache = new Map<string, HeaderResult>();

  async function header(file: string): Promise<{ readonly result: HeaderResult; readonly sizeBytes: number }> {
    const { size, mtimeMs, ino } = await stat(file);
    const key = `${file}\0${ino}\0${mtimeMs}\0${size}`;
    const known = cache.get(key);
    if (known !== undefined) return { result: known, sizeBytes: size };
    const result = await readHeader(file, size);
    const oldest = cache.keys().next().value;
    if (cache.size >= MAX_CACHED && oldest !== undefined) cache.delete(oldest);
    cache.set(key, result);
    return { result, sizeBytes: size };
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
      for (const part of shardNames(name)) {
        const read = await header(path.join(directory, part)).catch((error: unknown) => ({ problem: problemOf(error) }));
        if ('problem' in read) return { kind: 'unusable', message: `The model file "${part}" of "${id}" cannot be read: ${read.problem}` };
        if (!read.result.ok) return { kind: 'unusable', message: `The model file "${part}" of "${id}" ${read.result.problem}` };
        headers.push(read.result.header);
        sizeBytes += read.sizeBytes;
      }
      const [first] = headers;
      if (first !== undefined && isProjector(first)) {
        return { kind: 'unusable', message: `"${id}" is a vision projector, not a model: name the model that lies beside it` };
      }
      const projector = projectorFor(name, await readdir(directory).catch(() => []));
      const projectorPath = projector === undefined ? undefined : path.join(directory, projector);
      return { kind: 'present', facts: modelFacts({ id, hostPath: located.path, headers, sizeBytes, projectorPath }) };
    },
  };
}

type Located = { readonly kind: 'file'; readonly path: string } | Exclude<ModelRead, { readonly kind: 'present' }>;

/**
 * Links within the store are followed and their target is what the server gets; a link that leaves it is refused, because a container
 * sees nothing but the store and because an id must not be a way to any file of the host.
 */
async function locate(root: string, file: string): Promise<Located> {
  try {
    const realRoot = await realpath(root);
    const real = await realpath(path.join(root, file));
    const inside = path.relative(realRoot, real);
    if (inside.startsWith('..') || path.isAbsolute(inside)) {
      return {
        kind: 'unusable',
        message: `"${file}" is a link out of the model store: copy or hard-link the model into it, or mount its directory there`,
      };
    }
    const facts = await stat(real);
    if (facts.isDirectory()) return { kind: 'unusable', message: `"${file}" is a directory: name a model file in it` };
    if (!facts.isFile()) return { kind: 'unusable', message: `"${file}" is not a plain file` };
    return { kind: 'file', path: path.join(root, inside) };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
    return { kind: 'unusable', message: `"${file}" cannot be read: ${problemOf(error)}` };
  }
}

async function readHeader(file: string, sizeBytes: number): Promise<HeaderResult> {
  const handle = await open(file, 'r');
  try {
    for (const step of READ_STEPS_BYTES) {
      const length = Math.min(step, sizeBytes);
      const buffer = Buffer.allocUnsafe(length);
      const { bytesRead } = await handle.read(buffer, 0, length, 0);
      const read = readGgufHeader(buffer.subarray(0, bytesRead));
      if (read.kind === 'header') return checkWhole(read.header, sizeBytes);
      if (read.kind === 'corrupt') return { ok: false, problem: `is damaged or no GGUF file: ${read.message}; get it again` };
      if (length === sizeBytes) {
        return {
          ok: false,
          problem: `is incomplete: its header does not end within its ${sizeBytes} bytes; wait until its copy has ended, or get it again`,
        };
      }
    }
    return { ok: false, problem: 'is damaged: its header does not end; get it again' };
  } finally {
    await handle.close();
  }
}

function checkWhole(header: GgufHeader, sizeBytes: number): HeaderResult {
  if (sizeBytes >= header.fileBytes) return { ok: true, header };
  return { ok: false, problem: `is incomplete: ${sizeBytes} of ${header.fileBytes} bytes; wait until its copy has ended, or get it again` };
}

function problemOf(error: unknown): string {
  const code = codeOf(error);
  if (code === 'EACCES') return 'the service may not read it; change its permissions';
  if (code === 'ENOENT') return 'it is not there';
  return messageOf(error);
}
