/** Reads the built dashboard into memory: a few files of some hundred kilobytes. What is not read here cannot be asked for, so no path of a request ever reaches the disk. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../../platform/error-text.ts';
import { cacheHeader, mediaTypeOf, type Encoding } from './decide/page-headers.ts';

export interface PageFile {
  readonly type: string;
  readonly cache: string;
  /** Of the content without encoding; the weak form is sent, since encodings of one file share it. */
  readonly etag: string;
  readonly bodies: Readonly<Partial<Record<Encoding, Buffer>>> & { readonly identity: Buffer };
}

/** Path of a request → file. Empty if the dashboard has not been built. */
export type PageFiles = ReadonlyMap<string, PageFile>;

export function readPageFiles(directory: string): PageFiles {
  const read = new Map(listFiles(directory).map((name) => [name, readFileSync(join(directory, name))]));
  const files = new Map<string, PageFile>();
  for (const [name, identity] of read) {
    const path = name === 'index.html' ? '/' : `/${name}`;
    const type = mediaTypeOf(name);
    if (type === undefined) continue;
    const [br, gzip] = [read.get(`${name}.br`), read.get(`${name}.gz`)];
    const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 22);
    const bodies = { identity, ...(br === undefined ? {} : { br }), ...(gzip === undefined ? {} : { gzip }) };
    files.set(path, { type, cache: cacheHeader(path), etag: `W/"${hash}"`, bodies });
  }
  return files;
}

function listFiles(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
