/** The output of processes, in `<state>/logs/<name>.log`, both streams in the order they were written. Bounded. */
import { copyFile, mkdir, open, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogLine } from '../../reconciler/ports.ts';
import { createLineSplitter } from '../../platform/line-splitter.ts';

export interface ProcessLogs {
  /** Gives the number of the file, opened for appending, while a child is started that gets it for its two streams. */
  withFile<T>(name: string, work: (fd: number) => Promise<T>): Promise<T>;
  /** Where one process's output stops being of interest, its file is deleted. */
  remove(name: string): Promise<void>;
  /** Puts a full file aside, over the one before. The writer appends, so it goes on at the start of the emptied file. */
  bound(name: string): Promise<void>;
  /** With `follow` it ends once `isRunning` says no and all is read. */
  read(
    name: string,
    options: { readonly tail: number; readonly follow: boolean },
    isRunning: () => Promise<boolean>,
    signal: AbortSignal,
  ): AsyncGenerator<LogLine>;
}

/** Two such files at the most: enough for a long night of a talkative server. */
const LIMIT_BYTES = 8 * 1024 * 1024;
/** How far back `tail` looks. */
const TAIL_BYTES = 1024 * 1024;
const FOLLOW_PAUSE_MS = 200;

export function createProcessLogs(directory: string): ProcessLogs {
  const pathOf = (name: string): string => join(directory, `${name}.log`);
  const oldPathOf = (name: string): string => join(directory, `${name}.log.1`);
  return {
    async withFile(name, work) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const file = await open(pathOf(name), 'a', 0o600);
      try {
        return await work(file.fd);
      } finally {
        await file.close();
      }
    },
    async remove(name) {
      await Promise.all([rm(pathOf(name), { force: true }), rm(oldPathOf(name), { force: true })]);
    },
    async bound(name) {
      const size = await sizeOf(pathOf(name));
      if (size <= LIMIT_BYTES) return;
      await copyFile(pathOf(name), oldPathOf(name));
      await truncate(pathOf(name));
    },
    async *read(name, { tail, follow }, isRunning, signal) {
      const size = await sizeOf(pathOf(name));
      const old = size < TAIL_BYTES ? await textOf(oldPathOf(name), await sizeOf(oldPathOf(name))) : '';
      const present = await textOf(pathOf(name), size);
      // A line still being written is left to the following.
      const whole = follow ? present.slice(0, present.lastIndexOf('\n') + 1) : present;
      const lines = (old + whole).split('\n');
      if (lines.at(-1) === '') lines.pop();
      if (tail > 0) for (const text of lines.slice(-Math.trunc(tail))) yield { stream: 'stdout', text };
      if (!follow) return;
      yield* followFrom(pathOf(name), size - Buffer.byteLength(present) + Buffer.byteLength(whole), isRunning, signal);
    },
  };
}

async function* followFrom(path: string, from: number, isRunning: () => Promise<boolean>, signal: AbortSignal): AsyncGenerator<LogLine> {
  const splitter = createLineSplitter();
  let offset = from;
  while (!signal.aborted) {
    // Asked before the reading, so that the last words of a process that ends in between are read in the next round.
    const running = await isRunning();
    const size = await sizeOf(path);
    if (size < offset) offset = 0;
    while (offset < size) {
      const chunk = await bytesOf(path, offset, Math.min(size - offset, TAIL_BYTES));
      if (chunk.length === 0) break;
      offset += chunk.length;
      for (const text of splitter.push(chunk)) yield { stream: 'stdout', text };
    }
    if (!running) break;
    await sleep(FOLLOW_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
  const rest = splitter.end();
  if (rest !== undefined) yield { stream: 'stdout', text: rest };
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.size ?? 0;

async function textOf(path: string, size: number): Promise<string> {
  const from = Math.max(0, size - TAIL_BYTES);
  const text = (await bytesOf(path, from, size - from)).toString('utf8');
  return from === 0 ? text : text.slice(text.indexOf('\n') + 1);
}

async function bytesOf(path: string, position: number, length: number): Promise<Buffer> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined || length <= 0) {
    await file?.close();
    return Buffer.alloc(0);
  }
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
