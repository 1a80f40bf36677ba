/** Stores the output of processes in `<state>/logs/<name>.log`: both streams in order, limited in size. */
import { createReadStream } from 'node:fs';
import { copyFile, open, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { makeSubdirectory } from '../../files/write-file.ts';
import type { LogLine, Runtime } from '../../reconciler/ports.ts';
import { splitLines, readBeginning } from '../../platform/read-body.ts';
import { sleep } from '../../platform/clock.ts';

/** At most two files: a long night of a verbose server. */
const LIMIT_BYTES = 8 * 1024 * 1024;
/** Most output that `tail` reads. */
const TAIL_BYTES = 1024 * 1024;
const FOLLOW_PAUSE_MS = 200;

export function createProcessLogs(directory: string) {
  const pathOf = (name: string): string => join(directory, `${name}.log`);
  const oldPathOf = (name: string): string => join(directory, `${name}.log.1`);
  return {
    /** Opens the file for appending; `work` starts a child that writes both streams to it. */
    async withFile<T>(name: string, work: (fd: number) => Promise<T>): Promise<T> {
      await makeSubdirectory(directory, 0o700);
      await using file = await open(pathOf(name), 'a', 0o600);
      return await work(file.fd);
    },
    async remove(name: string): Promise<void> {
      await Promise.all([rm(pathOf(name), { force: true }), rm(oldPathOf(name), { force: true })]);
    },
    /** Moves a full file to the old one. The process appends, so it continues at the start of the truncated file. */
    async rotate(name: string): Promise<void> {
      const size = await sizeOf(pathOf(name));
      if (size <= LIMIT_BYTES) return;
      await copyFile(pathOf(name), oldPathOf(name));
      await truncate(pathOf(name));
    },
    /** `follow` ends once `isRunning` returns false and everything was read. */
    async *read(
      name: string,
      { tail, follow }: Parameters<Runtime['logs']>[1],
      isRunning: () => Promise<boolean>,
      signal: AbortSignal,
    ): AsyncGenerator<LogLine> {
      const size = await sizeOf(pathOf(name));
      const old = size < TAIL_BYTES ? await textOf(oldPathOf(name), await sizeOf(oldPathOf(name))) : '';
      const present = await textOf(pathOf(name), size);
      // `followFrom()` reads an incomplete line.
      const whole = follow ? present.slice(0, present.lastIndexOf('\n') + 1) : present;
      const lines = (old + whole).split('\n');
      if (lines.at(-1) === '') lines.pop();
      if (tail > 0) for (const text of lines.slice(-Math.trunc(tail))) yield { stream: 'stdout', text };
      if (!follow) return;
      const from = size - Buffer.byteLength(present) + Buffer.byteLength(whole);
      for await (const text of splitLines(followFrom(pathOf(name), from, isRunning, signal))) yield { stream: 'stdout', text };
    },
  };
}

async function* followFrom(path: string, from: number, isRunning: () => Promise<boolean>, signal: AbortSignal): AsyncGenerator<Buffer> {
  let offset = from;
  while (!signal.aborted) {
    // Checked before the read, so that the last output of a process is read in the next round.
    const running = await isRunning();
    const size = await sizeOf(path);
    if (size < offset) offset = 0;
    while (offset < size) {
      const chunk = await bytesOf(path, offset, Math.min(size, offset + TAIL_BYTES));
      if (chunk.length === 0) break;
      offset += chunk.length;
      yield chunk;
    }
    if (!running) return;
    await sleep(FOLLOW_PAUSE_MS, signal);
  }
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.size ?? 0;

async function textOf(path: string, size: number): Promise<string> {
  const from = Math.max(0, size - TAIL_BYTES);
  const text = (await bytesOf(path, from, size)).toString('utf8');
  return from === 0 ? text : text.slice(text.indexOf('\n') + 1);
}

/** Empty if the file does not exist. */
async function bytesOf(path: string, start: number, end: number): Promise<Buffer> {
  if (start >= end) return Buffer.alloc(0);
  return await readBeginning(createReadStream(path, { start }), end - start).catch(() => Buffer.alloc(0));
}
