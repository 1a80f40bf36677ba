/** Reads files of sysfs and `/proc`. Nothing here throws: what cannot be read is not there. */
import { open, readdir, readlink, access } from 'node:fs/promises';
import { basename, join } from 'node:path';

export interface MachineFiles {
  /** At most 2 MiB of the text; undefined if it cannot be read. */
  text(path: string): Promise<string | undefined>;
  /** The last part of what a link points to. */
  link(path: string): Promise<string | undefined>;
  exists(path: string): Promise<boolean>;
  /** At most 4,096 names; none if there is no such directory. */
  names(path: string): Promise<readonly string[]>;
}

/** The largest file is the list of PCI ids, of 1.4 MB. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Nearly all files are shorter. */
const FIRST_BYTES = 4096;
const CHUNK_BYTES = 64 * 1024;
const MAX_NAMES = 4096;

/** `root` takes the place of `/`, for tests. */
export function createMachineFiles(root = '/'): MachineFiles {
  return {
    text: (path) => readText(join(root, path)).catch(() => undefined),
    link: (path) => readlink(join(root, path)).then(basename, () => undefined),
    exists: (path) =>
      access(join(root, path)).then(
        () => true,
        () => false,
      ),
    names: (path) =>
      readdir(join(root, path)).then(
        (names) => names.slice(0, MAX_NAMES),
        () => [],
      ),
  };
}

/** Files of the kernel have no size and end where a read returns nothing. */
async function readText(path: string): Promise<string> {
  await using handle = await open(path, 'r');
  const chunks: Buffer[] = [];
  for (let total = 0; total < MAX_BYTES;) {
    const size = total === 0 ? FIRST_BYTES : CHUNK_BYTES;
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(size), 0, size, null);
    if (bytesRead === 0) break;
    chunks.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
  }
  return Buffer.concat(chunks).toString('utf8');
}
