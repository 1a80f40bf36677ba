/**
 * Reads the files of models into the page cache before a server needs them, and discards what it has read: one block
 * after the other on the thread pool, with a pause after each, so that whoever else reads from the disk gets its turn.
 */
import { constants } from 'node:fs';
import { open, readdir, readFile, stat, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { sleep } from '../platform/clock.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';
import type { ProviderRegistry } from '../providers/provider.ts';
import type { NextModel, ReadAhead } from '../reconciler/ports.ts';

export interface ReadAheadOptions {
  readonly providers: ProviderRegistry;
  /** Bytes that this process has read from disks so far; undefined where the system does not say. For tests. */
  readonly readFromDisk?: () => Promise<number | undefined>;
}

type OnProgress = Parameters<ReadAhead['follow']>[1];

const BLOCK_BYTES = 4 * 2 ** 20;
/** The pause after a block, as a part of the time that it took. */
const PAUSE_SHARE = 0.25;
const REPORT_EVERY_MS = 1000;
/** A file is taken to be in the page cache if none of so many samples, spread over it, comes from the disk. */
const SAMPLES = 16;
const SAMPLE_BYTES = 64 * 1024;
/** Never waits for the writer of a pipe. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

export function createReadAhead({ providers, readFromDisk = readOwnCount }: ReadAheadOptions): ReadAhead {
  /** What was read, or could not be, of what is listed. */
  const done = new Set<string>();
  let current: { readonly key: string; readonly abort: AbortController } | undefined;
  let listed: readonly NextModel[] = [];
  let report: OnProgress = () => undefined;

  /** Shards of a model are files beside it. */
  async function filesOf({ hostPath, provider }: NextModel['model']): Promise<readonly string[]> {
    const facts = await stat(hostPath);
    if (facts.isDirectory()) return (await readdir(hostPath)).map((name) => path.join(hostPath, name));
    if (!facts.isFile()) throw new Error(`"${hostPath}" is not a regular file`);
    const names = provider === undefined ? undefined : providers[provider]?.models.filesOf?.(path.basename(hostPath));
    return names?.map((name) => path.join(path.dirname(hostPath), name)) ?? [hostPath];
  }

  async function read({ slot, model }: NextModel, signal: AbortSignal): Promise<void> {
    const about = { model: model.id, totalBytes: model.sizeBytes };
    let doneBytes = 0;
    let reportedAt = performance.now();
    let counted = await readFromDisk();
    const tell = async (more: { readonly wasCached?: true; readonly problem?: string } = {}): Promise<void> => {
      const count = await readFromDisk();
      report(slot, { ...about, doneBytes: Math.min(doneBytes, model.sizeBytes), ...more }, Math.max(0, (count ?? 0) - (counted ?? 0)));
      counted = count;
      reportedAt = performance.now();
    };
    try {
      let isCached = true;
      for (const name of await filesOf(model)) {
        await using file = await open(name, FLAGS);
        const facts = await file.stat();
        if (!facts.isFile()) continue;
        if (await isInMemory(file, facts.size, readFromDisk)) {
          doneBytes += facts.size;
          continue;
        }
        isCached = false;
        for await (const bytes of readBlocks(file, signal)) {
          doneBytes += bytes;
          if (performance.now() - reportedAt >= REPORT_EVERY_MS) await tell();
        }
        if (signal.aborted) break;
      }
      await tell(isCached && doneBytes > 0 ? { wasCached: true } : {});
    } catch (error) {
      await tell({ problem: codeOf(error) === 'ENOENT' ? 'it is no longer there' : messageOf(error) });
    }
  }

  function next(): void {
    const model = current === undefined ? listed.find((each) => !done.has(keyOf(each))) : undefined;
    if (model === undefined) return;
    const own = { key: keyOf(model), abort: new AbortController() };
    current = own;
    void read(model, own.abort.signal).finally(() => {
      current = undefined;
      if (!own.abort.signal.aborted) done.add(own.key);
      next();
    });
  }

  return {
    follow(models, onProgress) {
      listed = models;
      report = onProgress;
      const keys = new Set(models.map(keyOf));
      for (const key of done) if (!keys.has(key)) done.delete(key);
      if (current !== undefined && !keys.has(current.key)) current.abort.abort();
      next();
    },
  };
}

/** A file that was replaced is another one. */
const keyOf = ({ model: { hostPath, version, sizeBytes } }: NextModel): string => `${hostPath}\0${version ?? ''}\0${sizeBytes}`;

/** Yields the size of each block, until the end of the file or until the signal aborts. */
async function* readBlocks(file: FileHandle, signal: AbortSignal): AsyncGenerator<number> {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  for (let offset = 0; !signal.aborted;) {
    const from = performance.now();
    const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, offset);
    if (bytesRead === 0) return;
    offset += bytesRead;
    yield bytesRead;
    await sleep((performance.now() - from) * PAUSE_SHARE);
  }
}

async function isInMemory(file: FileHandle, sizeBytes: number, readFromDisk: () => Promise<number | undefined>): Promise<boolean> {
  const before = await readFromDisk();
  if (before === undefined) return false;
  const sample = Buffer.allocUnsafeSlow(SAMPLE_BYTES);
  for (let index = 0; index < SAMPLES; index += 1) {
    await file.read(sample, 0, SAMPLE_BYTES, Math.floor((index * Math.max(0, sizeBytes - SAMPLE_BYTES)) / (SAMPLES - 1)));
    if ((await readFromDisk()) !== before) return false;
  }
  return true;
}

/** Undefined also where it counts nothing: file systems of the network do not. */
async function readOwnCount(): Promise<number | undefined> {
  const bytes = /^read_bytes: (\d+)$/m.exec(await readFile('/proc/self/io', 'utf8').catch(() => ''))?.[1];
  return bytes === undefined ? undefined : Number(bytes);
}
