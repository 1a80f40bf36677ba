/**
 * Captures of requests (`svcctl capture start`): which ones run, and their files in `<state>/captures`. A capture ends
 * with its number of requests, its time, its size, a disk that takes no more, or the service. Its file is deleted after
 * a day.
 */
import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import type { Clock } from '../reconciler/ports.ts';
import type { Capture, CaptureWish, StartedCapture } from '../schema/status/resource-answers.ts';
import { SlotName } from '../schema/words/names.ts';
import { openRegularFile, SYSTEM_DISK, type Disk } from './regular-file.ts';
import { createSeal } from './sealed-lines.ts';
import { explainWriteError, ifThere, listDirectory, makeSubdirectory } from './write-file.ts';

const HOUR_MS = 3_600_000;
const KEPT_MS = 24 * HOUR_MS;
const SWEEP_MS = 60_000;
/** Sealed bytes of one capture. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Each copies what it captures, and an administrator should see at a glance which ones run. */
const MOST_CAPTURES = 4;
const ID = /^[0-9a-f]{16}$/;
const SUFFIX = '.svcc';
/** The first line of a file has some hundred bytes. */
const HEAD_BYTES = 4096;

const Head = z.object({ caller: z.string().optional(), slot: SlotName.optional(), started_at: z.iso.datetime() });

interface CapturesDeps {
  readonly directory: string;
  readonly clock: Clock;
  readonly log: SourceLog;
  /** Called with the captures that run whenever they change. Requests that begin later are captured by them. */
  readonly apply: (running: readonly (CaptureWish & { readonly id: string })[]) => void | Promise<void>;
  readonly disk?: Disk;
  /** How often files that have expired are looked for; set by tests only. */
  readonly sweepMs?: number;
}

interface RunningCapture extends CaptureWish {
  readonly id: string;
  readonly startedAt: number;
  readonly handle: FileHandle;
  readonly seal: Omit<ReturnType<typeof createSeal>, 'key'>;
  cancel: () => void;
  /** Everything so far is in the file. */
  written: Promise<void>;
  count: number;
  sizeBytes: number;
  endedBy: string | undefined;
}

export type Captures = ReturnType<typeof createCaptures>;

/** Too early rather than too late: a clock that was set back must not keep a file for years. Pure. */
export const isExpired = (startedAt: number, now: number): boolean => now - startedAt >= KEPT_MS || startedAt - now > HOUR_MS;

export function createCaptures({ directory, clock, log, apply, disk = SYSTEM_DISK, sweepMs = SWEEP_MS }: CapturesDeps) {
  /** What this process has started, also if it has ended. */
  const captures = new Map<string, RunningCapture>();
  const opening = new Set<string>();
  const running = (): readonly RunningCapture[] => [...captures.values()].filter(({ endedBy }) => endedBy === undefined);
  const fileOf = (id: string): string => join(directory, `${id}${SUFFIX}`);

  function append(capture: RunningCapture, text: string): void {
    capture.sizeBytes += text.length;
    capture.written = capture.written.then(async () => await capture.handle.appendFile(text));
  }

  function end(capture: RunningCapture, why: string): void {
    if (capture.endedBy !== undefined) return;
    capture.endedBy = why;
    capture.cancel();
    append(capture, capture.seal.end(why));
    capture.written = capture.written
      .catch((error: unknown) => {
        capture.endedBy = `Its file could not be written: ${explainWriteError(fileOf(capture.id), error)}`;
        log.warn({ capture: capture.id }, `The capture "${capture.id}" is not complete. ${capture.endedBy}`);
      })
      .then(async () => await capture.handle.close().catch(() => undefined));
    log.info({ capture: capture.id, requests: capture.count }, `The capture "${capture.id}" has ended: ${why}`);
    void apply(running());
  }

  async function open(id: string, wish: CaptureWish): Promise<StartedCapture> {
    const startedAt = clock.wallNow();
    const { key, ...seal } = createSeal({ id, caller: wish.caller, slot: wish.slot, started_at: new Date(startedAt).toISOString() });
    await makeSubdirectory(directory, 0o700, disk);
    const handle = await disk.open(fileOf(id), 'wx', 0o600);
    try {
      await handle.appendFile(seal.head);
    } catch (error) {
      await handle.close();
      await disk.rm(fileOf(id), { force: true }).catch(() => undefined);
      throw error;
    }
    const start = { ...wish, id, startedAt, handle, seal, count: 0, sizeBytes: seal.head.length, endedBy: undefined };
    const capture: RunningCapture = { ...start, cancel: () => undefined, written: Promise.resolve() };
    capture.cancel = clock.at(clock.now() + wish.seconds * 1000, () => end(capture, 'its time is over'));
    captures.set(id, capture);
    await apply(running());
    return { ...viewOf(id, capture), key };
  }

  async function describe(id: string): Promise<Capture | undefined> {
    const known = captures.get(id);
    const facts = known ?? (ID.test(id) ? await readHead(fileOf(id), disk) : undefined);
    return facts && viewOf(id, facts);
  }

  async function remove(id: string): Promise<boolean> {
    if (!ID.test(id)) return false;
    const capture = captures.get(id);
    if (capture !== undefined) end(capture, 'it was deleted');
    await capture?.written;
    captures.delete(id);
    return (await ifThere(disk.rm(fileOf(id)).then(() => true))) ?? false;
  }

  /** The newest first, after what has expired was deleted. */
  async function list(): Promise<readonly Capture[]> {
    const files = (await listDirectory(directory, disk)).filter((name) => name.endsWith(SUFFIX));
    const kept: Capture[] = [];
    for (const id of files.map((name) => name.slice(0, -SUFFIX.length))) {
      const facts = opening.has(id) ? undefined : await describe(id);
      if (facts === undefined) continue;
      if (facts.active || !isExpired(Date.parse(facts.started_at), clock.wallNow())) kept.push(facts);
      else await remove(id);
    }
    return kept.toSorted((a, b) => b.started_at.localeCompare(a.started_at));
  }

  function sweep(): void {
    list().catch((error: unknown) => log.warn({ directory }, `Captures that have expired cannot be deleted: ${messageOf(error)}`));
  }
  sweep();
  const timer = setInterval(sweep, sweepMs).unref();

  return {
    active: (): number => running().length,
    list,
    remove,
    async start(wish: CaptureWish): Promise<StartedCapture | { readonly problem: string }> {
      if (running().length + opening.size >= MOST_CAPTURES)
        return { problem: `${MOST_CAPTURES} captures run, as many as may: stop one with "svcctl capture stop"` };
      const id = randomBytes(8).toString('hex');
      opening.add(id);
      try {
        return await open(id, wish);
      } catch (error) {
        return { problem: `The capture has no file: ${explainWriteError(fileOf(id), error)}` };
      } finally {
        opening.delete(id);
      }
    },
    /** Adds a request to captures that still run. Never throws. */
    take(ids: readonly string[], text: string): void {
      for (const capture of running()) {
        if (!ids.includes(capture.id)) continue;
        if (capture.sizeBytes + text.length > MOST_BYTES) {
          end(capture, `it would be larger than ${MOST_BYTES / 2 ** 20} MiB`);
          continue;
        }
        append(capture, capture.seal.seal(text));
        capture.written.catch(() => end(capture, 'its file cannot be written'));
        capture.count += 1;
        if (capture.count >= capture.requests) end(capture, 'it has all of its requests');
      }
    },
    async stop(id: string): Promise<Capture | undefined> {
      const capture = captures.get(id);
      if (capture !== undefined) end(capture, 'it was stopped');
      await capture?.written;
      return await describe(id);
    },
    /** The file as it is now; undefined if it does not exist. */
    async read(id: string): Promise<string | undefined> {
      if (!(await list()).some((capture) => capture.id === id)) return undefined;
      await using handle = await ifThere(openCapture(fileOf(id), disk));
      return await handle?.readFile('latin1');
    },
    async close(): Promise<void> {
      clearInterval(timer);
      for (const capture of running()) end(capture, 'the service has stopped');
      await Promise.all([...captures.values()].map(async ({ written }) => await written));
    },
  };
}

type CaptureFacts = Pick<RunningCapture, 'caller' | 'slot' | 'startedAt' | 'sizeBytes'> &
  Partial<Pick<RunningCapture, 'count' | 'endedBy'>>;

/** `count` undefined: it was started before this process, and has ended. */
function viewOf(id: string, { caller, slot, startedAt, sizeBytes, count, endedBy }: CaptureFacts): Capture {
  return {
    id,
    caller: caller ?? null,
    slot: slot ?? null,
    active: count !== undefined && endedBy === undefined,
    ended_by: endedBy ?? null,
    requests: count ?? null,
    size_bytes: sizeBytes,
    started_at: new Date(startedAt).toISOString(),
    expires_at: new Date(startedAt + KEPT_MS).toISOString(),
  };
}

const openCapture = async (path: string, disk: Disk): Promise<FileHandle> =>
  await openRegularFile(path, { mostBytes: 2 * MOST_BYTES, follow: false, disk });

/** Undefined for what is no file of a capture, such as a named pipe or a link: it must not hide the others. */
async function readHead(path: string, disk: Disk) {
  await using handle = await openCapture(path, disk).catch(() => undefined);
  if (handle === undefined) return undefined;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  const [line = ''] = buffer.toString('utf8', 0, bytesRead).split('\n');
  // A crash may have left a part of it, which expires at once.
  const { caller, slot, started_at: startedAt } = Head.safeParse(parseJson(line)).data ?? { started_at: new Date(0).toISOString() };
  return { caller, slot, startedAt: Date.parse(startedAt), sizeBytes: (await handle.stat()).size };
}
