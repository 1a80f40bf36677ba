/**
 * What becomes of one member of an archive: a file or a directory below the directory of the model, or a link to a file of the same archive. Everything else is refused,
 * because an archive comes from somebody else: what leads out of the directory, devices, and more than any model needs. Pure.
 */
import { shorten } from '../../schema/words/nearest-word.ts';

/** In characters. */
const LONGEST_QUOTE = 100;

export interface ArchiveMember {
  readonly name: string;
  /** As tar names it: `file`, `directory`, `symlink`, `link`, or something else. */
  readonly type: string | undefined;
  readonly sizeBytes: number;
  /** Of a link. */
  readonly linkName?: string | undefined;
}

export interface UnpackLimits {
  /** Of all files together. */
  readonly bytes: number;
  /** Files, directories and links. */
  readonly members: number;
}

export interface Unpacked {
  readonly bytes: number;
  readonly members: number;
}

export type MemberVerdict =
  /** `path`: relative to the directory into which the archive is unpacked. */
  | { readonly kind: 'file' | 'directory'; readonly path: string }
  /** `target`: the path of another member, to which a hard link is made. No symbolic link is ever made. */
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'skip' }
  /** `message` completes the sentence "The archive has …". */
  | { readonly kind: 'refuse'; readonly message: string };

/** Name of the list of what an archive was unpacked to. It is in the directory of its files, so no member may have its name. */
export const FILE_LIST = '.svc-files.json';

const MIB = 2 ** 20;
/** Weights hardly get smaller in an archive. Files of zeros do: the voices of a test model are one. */
const MOST_TIMES = 8;
const LEAST_LIMIT_BYTES = 256 * MIB;
/** The largest known speech model has some 500, most of them dictionaries. */
const MAX_MEMBERS = 20_000;
const MAX_PARTS = 16;
/** Of a part in bytes, as common file systems allow. */
const MAX_PART_BYTES = 255;
const MAX_PATH_BYTES = 1000;

/** Returns what an archive may unpack to. `unpackedBytes`: what its source states of all its files. */
export function unpackLimits({ sizeBytes, unpackedBytes }: { readonly sizeBytes: number; readonly unpackedBytes?: number | undefined }) {
  return { bytes: unpackedBytes ?? MOST_TIMES * sizeBytes + LEAST_LIMIT_BYTES, members: MAX_MEMBERS };
}

/** Returns the room that unpacking takes at least, before anything is known of the files: they are hardly ever smaller than their archive. */
export function leastUnpackedBytes({
  sizeBytes,
  unpackedBytes,
}: {
  readonly sizeBytes: number;
  readonly unpackedBytes?: number | undefined;
}) {
  return unpackedBytes ?? sizeBytes;
}

/** `soFar`: what the members before this one came to. */
export function judgeMember(member: ArchiveMember, soFar: Unpacked, limits: UnpackLimits): MemberVerdict {
  const name = quote(member.name);
  if (soFar.members >= limits.members) return refuse(`more than ${limits.members} files`);
  const parts = partsOf(member.name);
  if (parts === undefined) return refuse(`a file with the name ${name}, which leads out of its directory or cannot be a file name`);
  // What macOS adds for attributes of its own, and the directory that holds everything.
  if (parts.length === 0 || parts.some((part) => part.startsWith('._'))) return { kind: 'skip' };
  if (parts.at(-1) === FILE_LIST) return refuse(`a file with the name ${name}, which is kept for the list of its files`);
  const path = parts.join('/');
  switch (member.type) {
    case 'directory':
      return { kind: 'directory', path };
    case 'file':
    case undefined:
      if (soFar.bytes + member.sizeBytes > limits.bytes) return refuse(`more than ${limits.bytes} bytes of files`);
      return { kind: 'file', path };
    case 'symlink':
    case 'link':
      return judgeLink(member, path);
    default:
      return refuse(`${name}, which is neither a file nor a directory but a ${quote(member.type)}`);
  }
}

function judgeLink({ name, type, linkName = '' }: ArchiveMember, path: string): MemberVerdict {
  const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
  // A hard link names a member; the target of a symbolic link is relative to the directory that it is in.
  const parts = linkName.startsWith('/') ? undefined : resolveParts(type === 'link' || parent === '' ? linkName : `${parent}/${linkName}`);
  if (parts === undefined || parts.length === 0)
    return refuse(`the link ${quote(name)} to ${quote(linkName)}, which leads out of its directory`);
  return { kind: 'link', path, target: parts.join('/') };
}

/** Undefined for a name that must not be used. A name may begin with `./`, and end with `/`. */
function partsOf(name: string): readonly string[] | undefined {
  if (name.startsWith('/')) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return isSafe(parts) ? parts : undefined;
}

/** Resolves `..` within the archive. Undefined if it leads out of it. */
function resolveParts(name: string): readonly string[] | undefined {
  const parts: string[] = [];
  for (const part of name.split('/')) {
    if (part === '..' && parts.pop() === undefined) return undefined;
    if (part !== '' && part !== '.' && part !== '..') parts.push(part);
  }
  return isSafe(parts) ? parts : undefined;
}

function isSafe(parts: readonly string[]): boolean {
  const bytes = (text: string): number => new TextEncoder().encode(text).length;
  return (
    parts.length <= MAX_PARTS &&
    bytes(parts.join('/')) <= MAX_PATH_BYTES &&
    parts.every((part) => part !== '..' && !/[\p{C}\\]/u.test(part) && bytes(part) <= MAX_PART_BYTES)
  );
}

function refuse(message: string): MemberVerdict {
  return { kind: 'refuse', message };
}

/** For a message: a name from an archive may contain anything. */
function quote(text: string): string {
  return `"${shorten(text.replaceAll(/[\p{C}"\\]/gu, '?'), LONGEST_QUOTE)}"`;
}
