/**
 * The demo models for speech: directories of files that are generated, WITHOUT trained weights. One understands nothing and always answers the
 * same sentence; the other plays tones instead of words. They allow a first run without a download, and exact tests.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { encodeListener } from './demo-listener.ts';
import { encodeSpeaker } from './demo-speaker.ts';

const DEMO_BUNDLES = { 'demo-listener': encodeListener, 'demo-speaker': encodeSpeaker } as const;

export type DemoBundleId = keyof typeof DEMO_BUNDLES;

export const DEMO_BUNDLE_IDS: readonly DemoBundleId[] = ['demo-listener', 'demo-speaker'];

/** Returns the path of a demo bundle, relative to the root of the store. */
export const demoBundlePath = (id: DemoBundleId): string => `demo/${id}`;

/** Returns the files of a demo bundle, which are the same on every machine. */
export const encodeDemoBundle = (id: DemoBundleId): Readonly<Record<string, Uint8Array>> => DEMO_BUNDLES[id]();

/** Writes demo bundles below `root` and returns their absolute paths. Files that already have the right content are not touched. */
export async function writeDemoBundles(root: string, ids: readonly DemoBundleId[] = DEMO_BUNDLE_IDS): Promise<readonly string[]> {
  return Promise.all(
    ids.map(async (id) => {
      const directory = path.join(root, demoBundlePath(id));
      await mkdir(directory, { recursive: true });
      await Promise.all(Object.entries(encodeDemoBundle(id)).map(async ([name, bytes]) => writeIfOther(path.join(directory, name), bytes)));
      return directory;
    }),
  );
}

/** Writes a file atomically. Other processes and pods may write the same one at the same time. */
async function writeIfOther(file: string, bytes: Uint8Array): Promise<void> {
  const present = await readFile(file).catch(() => undefined);
  if (present !== undefined && Buffer.compare(present, bytes) === 0) return;
  const part = `${file}.${randomUUID()}.part`;
  try {
    await writeFile(part, bytes);
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw error;
  }
}
