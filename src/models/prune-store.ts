/** Finds abandoned parts and journals, and pins whose files are gone. */
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { succeeds } from '../files/write-file.ts';
import type { ModelSources } from './model-sources.ts';

export interface Leftover {
  readonly path: string;
  readonly sizeBytes: number;
}

/** Retried downloads change their part far more often. */
const ABANDONED_MS = 24 * 3_600_000;
const DEPTH = 8;
/** Parts with their journals, and temporary files of `writeFileAtomically`. */
const LEFTOVER = /\.part(?:\.journal)?$|^\..+\.[0-9a-f]{8}\.tmp$/;

/** `now`: Unix milliseconds, by the clock of the files. */
export async function findLeftovers(root: string, now: number): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  const visit = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(path.join(root, directory), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const file = path.join(directory, entry.name);
      if (entry.isDirectory() && entry.name.endsWith('.part')) {
        const { sizeBytes, mtimeMs } = await measure(path.join(root, file));
        if (now - mtimeMs > ABANDONED_MS) found.push({ path: file, sizeBytes });
      } else if (entry.isDirectory() && depth < DEPTH) await visit(file, depth + 1);
      if (!entry.isFile() || !LEFTOVER.test(entry.name)) continue;
      const facts = await stat(path.join(root, file)).catch(() => undefined);
      // Sparse files take less disk space than their size.
      if (facts !== undefined && now - facts.mtimeMs > ABANDONED_MS)
        found.push({ path: file, sizeBytes: Math.min(facts.size, 512 * facts.blocks) });
    }
  };
  await visit('', 0);
  return found;
}

async function measure(directory: string): Promise<{ readonly sizeBytes: number; readonly mtimeMs: number }> {
  let sizeBytes = 0;
  let { mtimeMs } = await stat(directory);
  for (const name of await readdir(directory, { recursive: true }).catch(() => [])) {
    const facts = await lstat(path.join(directory, name)).catch(() => undefined);
    sizeBytes += facts?.isFile() === true ? facts.size : 0;
    mtimeMs = Math.max(mtimeMs, facts?.mtimeMs ?? 0);
  }
  return { sizeBytes, mtimeMs };
}

export async function removeLeftovers(root: string, leftovers: readonly Leftover[]): Promise<void> {
  for (const { path: file } of leftovers) await rm(path.join(root, file), { force: true, recursive: true });
}

export async function forgetLostModels(root: string, { pins }: Pick<ModelSources, 'pins'>): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const pin of await pins.list()) {
    const present = await Promise.all(pin.files.map(async (file) => succeeds(stat(path.join(root, file.path)))));
    const parts = await Promise.all(pin.files.map(async (file) => hasPart(path.join(root, file.path))));
    if ([...present, ...parts].includes(true)) continue;
    await pins.remove(pin.id);
    lost.push(pin.id);
  }
  return lost;
}

async function hasPart(target: string): Promise<boolean> {
  const names = await readdir(path.dirname(target)).catch(() => []);
  return names.some((name) => name.startsWith(`${path.basename(target)}.`) && name.endsWith('.part'));
}
