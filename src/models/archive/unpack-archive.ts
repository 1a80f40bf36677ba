/** Unpacks an archive into a new directory, or refuses it as a whole. Ignores owners, modes and times. */
import { createHash } from 'node:crypto';
import { link, mkdir, open, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createTarDecoder, type ParsedTarEntry } from 'modern-tar';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { FILE_LIST, judgeMember, unpackLimits, type ArchiveSize, type MemberVerdict, type UnpackLimits } from '../decide/judge-member.ts';
import { Failed, storageFailure, type DiskRoom } from '../download/disk-room.ts';
import type { FileList, UnpackedFile } from './file-list.ts';
import { readBzip2 } from './read-bzip2.ts';

export interface UnpackArchive extends ArchiveSize {
  /** Its checksum was compared. */
  readonly archive: string;
  readonly sha256: string;
  readonly url: string;
  /** A directory that exists and is empty. */
  readonly into: string;
  readonly room: DiskRoom;
  readonly onBytes: (unpackedBytes: number) => void;
}

interface Unpacking extends UnpackArchive {
  readonly limits: UnpackLimits;
  readonly files: Map<string, UnpackedFile>;
  readonly links: Extract<MemberVerdict, { readonly kind: 'link' }>[];
  members: number;
  bytes: number;
}

/** The archive is refused. The message completes the sentence "The archive has …". */
class Refused extends Error {
  override readonly name = 'Refused';
}

/** A tar file ends with zeros, which common programs pad to 10 KiB, and each member has a header. */
const OF_TAR_BYTES = 2 ** 20;
const HEADER_BYTES = 4096;

/** Resolves to the directory with the files and their list: `into`, or the only directory in it. */
export async function unpackArchive(options: UnpackArchive, signal: AbortSignal): Promise<Result<string>> {
  const unpacking: Unpacking = { ...options, limits: unpackLimits(options), files: new Map(), links: [], members: 0, bytes: 0 };
  try {
    await unpackMembers(unpacking, signal);
    await makeLinks(unpacking);
    if (unpacking.files.size === 0) throw new Refused('no files');
    return ok(await writeFileList(unpacking));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Failed) return { ok: false, failure: error.failure };
    if (error instanceof Refused) return unusable(options, `it has ${error.message}`);
    if (/^E[A-Z]+$/.test(codeOf(error))) return { ok: false, failure: storageFailure(options.into, error) };
    return unusable(options, `it is damaged or no ".tar.bz2" archive (${messageOf(error)})`);
  }
}

function unusable({ url }: UnpackArchive, why: string): Result<never> {
  return fail('stalled', 'ModelUnusable', `The archive "${url}" was not unpacked: ${why}; use another model`);
}

async function unpackMembers(unpacking: Unpacking, signal: AbortSignal): Promise<void> {
  const own = new AbortController();
  const { bytes, members } = unpacking.limits;
  const source = readBzip2(unpacking.archive, bytes + members * HEADER_BYTES + OF_TAR_BYTES, AbortSignal.any([signal, own.signal]));
  try {
    const entries = ReadableStream.from<Uint8Array>(source).pipeThrough(createTarDecoder({ strict: true }));
    for await (const entry of entries) await unpackMember(unpacking, entry, signal);
  } finally {
    own.abort();
    await source.return().catch(() => undefined);
  }
}

async function unpackMember(unpacking: Unpacking, entry: ParsedTarEntry, signal: AbortSignal): Promise<void> {
  const { links, into, limits } = unpacking;
  const { header } = entry;
  signal.throwIfAborted();
  const member = { name: header.name, type: header.type, sizeBytes: header.size, linkName: header.linkname };
  const verdict = judgeMember(member, unpacking, limits);
  unpacking.members += 1;
  switch (verdict.kind) {
    case 'refuse':
      throw new Refused(verdict.message);
    case 'file':
      return await unpackFile(unpacking, verdict.path, entry);
    case 'directory':
      await makeDirectory(into, verdict.path);
      break;
    case 'link':
      links.push(verdict);
      break;
    case 'skip':
      break;
    default:
      verdict satisfies never;
  }
  await entry.body.cancel();
}

async function unpackFile(unpacking: Unpacking, name: string, { header, body }: ParsedTarEntry): Promise<void> {
  const { into, room, files, onBytes } = unpacking;
  const reserved = await room.reserve(into, () => header.size);
  if (!reserved.ok) throw new Failed(reserved.failure);
  using _room = reserved.value;
  const parent = path.posix.dirname(name);
  if (parent !== '.') await makeDirectory(into, parent);
  // Fails if it exists, even as a link.
  await using handle = await open(path.join(into, name), 'wx').catch(explainTwice(name));
  const hash = createHash('sha256');
  for await (const chunk of body) {
    hash.update(chunk);
    for (let written = 0; written < chunk.length;) written += (await handle.write(chunk, written)).bytesWritten;
    unpacking.bytes += chunk.length;
    onBytes(unpacking.bytes);
  }
  await handle.sync();
  files.set(name, { path: name, sizeBytes: header.size, sha256: hash.digest('hex') });
}

async function makeDirectory(into: string, name: string): Promise<void> {
  await mkdir(path.join(into, name), { recursive: true }).catch(explainTwice(name));
}

function explainTwice(name: string): (error: unknown) => never {
  return (error) => {
    if (['EEXIST', 'ENOTDIR', 'EISDIR'].includes(codeOf(error))) throw new Refused(`"${name}" twice, or as a file and as a directory`);
    throw error;
  };
}

/** A link may precede its target, and point to another link. */
async function makeLinks(unpacking: Unpacking): Promise<void> {
  const { links, files, into, limits } = unpacking;
  let waiting = links;
  while (waiting.length > 0) {
    const ready = waiting.filter(({ target }) => files.has(target));
    const [first] = waiting;
    if (ready.length === 0 && first !== undefined)
      throw new Refused(`the link "${first.path}" to "${first.target}", which is none of its files`);
    for (const { path: name, target } of ready) {
      const file = files.get(target);
      if (file === undefined) continue;
      // Links take no disk space, but each is read when the model is verified.
      unpacking.bytes += file.sizeBytes;
      if (unpacking.bytes > limits.bytes) throw new Refused(`more than ${limits.bytes} bytes of files`);
      await makeDirectory(into, path.posix.dirname(name));
      await link(path.join(into, target), path.join(into, name)).catch(explainTwice(name));
      files.set(name, { ...file, path: name });
    }
    waiting = waiting.filter((each) => !ready.includes(each));
  }
}

/** Most archives have a single directory, whose name says nothing: its files become the files of the model. */
async function writeFileList({ into, files, sha256 }: Unpacking): Promise<string> {
  const [first, ...more] = await readdir(into, { withFileTypes: true });
  const only = first?.isDirectory() === true && more.length === 0 ? first.name : undefined;
  const root = only === undefined ? into : path.join(into, only);
  const listed = [...files.values()].map((file) => (only === undefined ? file : { ...file, path: file.path.slice(only.length + 1) }));
  const list: FileList = { version: 1, archive: sha256.toLowerCase(), files: listed.toSorted((a, b) => (a.path < b.path ? -1 : 1)) };
  await writeFile(path.join(root, FILE_LIST), `${JSON.stringify(list, undefined, 1)}\n`, { flag: 'wx', flush: true });
  return root;
}
