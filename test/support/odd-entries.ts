/** What may stand where a file should be. Devices need root. */
import { execFileSync } from 'node:child_process';
import { mkdir, open, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';

const PLANTS: Readonly<Record<string, (place: string) => unknown>> = {
  'a named pipe': (place) => execFileSync('mkfifo', [place]),
  // Reading it never ends.
  'a device': (place) => execFileSync('mknod', [place, 'c', '1', '5']),
  'a directory': async (place) => await mkdir(place),
  'a socket': async (place) => {
    const server = createServer().unref();
    await new Promise<void>((resolve) => server.listen(place, resolve));
  },
  'a file of 1 GiB': async (place) => {
    const handle = await open(place, 'w', 0o600);
    await handle.truncate(2 ** 30);
    await handle.close();
  },
};

export const ODD_ENTRIES = Object.keys(PLANTS).filter((kind) => kind !== 'a device' || process.getuid?.() === 0);

/** The words with which a message names the problem. */
export const problemOf = (kind: string): string => (kind === 'a file of 1 GiB' ? `has ${2 ** 30} bytes` : `is ${kind}, not a file`);

/** Replaces whatever is there. */
export async function plant(kind: string, place: string): Promise<void> {
  await rm(place, { recursive: true, force: true });
  await mkdir(path.dirname(place), { recursive: true });
  await PLANTS[kind]?.(place);
}
