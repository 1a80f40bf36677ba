/**
 * Watches a directory and reports once its files have changed and the quiet period has passed, possibly without a
 * change. Callers read everything. Survives deletion and re-creation of the directory, and polls where the system
 * cannot watch.
 */
import { basename } from 'node:path';
import { watch as watchFiles, type ChokidarOptions, type FSWatcher } from 'chokidar';
import { codeOf, messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { SYSTEM_DISK, type Disk } from './regular-file.ts';
import { ifThere } from './write-file.ts';

export interface WatchDirectoryOptions {
  readonly directory: string;
  /** Names to report. Default: all ".toml" files. */
  readonly names?: readonly string[];
  /** `onQuiet` is called once no file has changed for this long, or after ten times this. */
  readonly quietPeriodMs: number;
  readonly log: SourceLog;
  /** Chokidar's `watch`; tests pass one that fails. */
  readonly watch?: (path: string, options: ChokidarOptions) => FSWatcher;
}

/** Interval of one `stat` of the directory: chokidar does not notice its replacement. */
const HEARTBEAT_MS = 2000;
const POLLING_MS = 500;
/** Chokidar may wrap the error, so that only its text has the code. */
const ENTRY_ERRORS = /\b(?:ELOOP|ENOENT|ENOTDIR|ENXIO|ENAMETOOLONG|EACCES|EPERM)\b/;
const LONGEST_WAIT_FACTOR = 10;

/** Calls `onQuiet` after each change and the quiet period, until the signal aborts. */
export function watchDirectory(options: WatchDirectoryOptions, onQuiet: () => void, signal: AbortSignal): void {
  const { directory, log } = options;
  const changed = debounce(options.quietPeriodMs, onQuiet, signal);
  let watcher: FSWatcher | undefined;
  let identity: string | undefined;
  let polling = false;
  let checking = false;

  const close = () => {
    void watcher?.close().catch(() => undefined);
    watcher = undefined;
  };
  const startPolling = (error: unknown) => {
    // An entry that cannot be watched, such as a link to itself, is reported by those who read it.
    if (signal.aborted || polling || ENTRY_ERRORS.test(messageOf(error))) return;
    polling = true;
    log.warn(
      { directory, code: codeOf(error), error: messageOf(error) },
      `Watching "${directory}" failed, polling it twice a second; raise "fs.inotify.max_user_watches" or "fs.inotify.max_user_instances"`,
    );
    close();
    start();
    changed();
  };
  const start = () => {
    try {
      watcher = (options.watch ?? watchFiles)(directory, chokidarOptions(options, polling));
    } catch (error) {
      startPolling(error);
      return;
    }
    // "ready" too: changes between the last read and the start of the watch would be lost otherwise.
    watcher.on('all', changed).on('ready', changed).on('error', startPolling);
  };
  const checkIdentity = async () => {
    if (checking) return;
    checking = true;
    const present = await identityOf(directory).catch(() => identity);
    checking = false;
    if (signal.aborted || present === identity) return;
    identity = present;
    close();
    if (present !== undefined) start();
    changed();
  };

  if (signal.aborted) return;
  void checkIdentity();
  const heartbeat = setInterval(() => void checkIdentity(), HEARTBEAT_MS);
  heartbeat.unref();
  signal.addEventListener('abort', () => {
    clearInterval(heartbeat);
    close();
  });
}

function chokidarOptions({ directory, names }: WatchDirectoryOptions, polling: boolean): ChokidarOptions {
  const isWatched = (path: string) => (names === undefined ? path.endsWith('.toml') : names.includes(basename(path)));
  return {
    depth: 0,
    ignoreInitial: true,
    ignorePermissionErrors: true,
    persistent: false,
    // The quiet period has the same effect, a hundred milliseconds sooner.
    atomic: false,
    backend: polling ? 'polling' : 'native',
    pollingInterval: POLLING_MS,
    // Kubernetes replaces a mounted directory through its link "..data".
    ignored: (path) => path !== directory && !isWatched(path) && !/(^|[/\\])\.\.[^/\\]*$/.test(path),
  };
}

/** Differs from a later directory at the same path. Undefined if there is none. Throws if that cannot be told. */
export async function identityOf(directory: string, disk: Disk = SYSTEM_DISK): Promise<string | undefined> {
  const facts = await ifThere(disk.stat(directory, { bigint: true }));
  return facts?.isDirectory() === true ? `${facts.dev}:${facts.ino}:${facts.birthtimeNs}` : undefined;
}

/** Returns a function that calls `onQuiet` once it was not called for `quietPeriodMs`. */
function debounce(quietPeriodMs: number, onQuiet: () => void, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  let firstCallAt = 0;
  signal.addEventListener('abort', () => clearTimeout(timer));
  return () => {
    if (signal.aborted) return;
    const now = performance.now();
    if (timer === undefined) firstCallAt = now;
    clearTimeout(timer);
    const leftMs = firstCallAt + quietPeriodMs * LONGEST_WAIT_FACTOR - now;
    timer = setTimeout(
      () => {
        timer = undefined;
        onQuiet();
      },
      Math.min(quietPeriodMs, Math.max(0, leftMs)),
    );
    timer.unref();
  };
}

/** File times have fractions of a millisecond, so a new file may seem newer than now. */
const CLOCK_STEP_MS = 1;

/**
 * Returns the rest of the quiet period in milliseconds; 0 or less if the file may be used. `writtenAt`: Unix
 * milliseconds. A time in the future means that a clock is wrong.
 */
export function quietRestMs(writtenAt: number, now: number, quietPeriodMs: number): number {
  const ageMs = now - writtenAt;
  return ageMs <= -CLOCK_STEP_MS ? 0 : quietPeriodMs - Math.max(0, ageMs);
}
