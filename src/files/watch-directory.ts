/**
 * Says when a directory's files have changed and are quiet again. It does not say what changed: whoever listens reads everything.
 * It may call for nothing; it stays with a directory that is deleted and made again, and polls where the system cannot watch.
 */
import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { watch as watchFiles, type ChokidarOptions, type FSWatcher } from 'chokidar';
import { codeOf, messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';

export interface WatchDirectoryOptions {
  readonly directory: string;
  /** How long nothing may happen before `onQuiet` is called; an endless stream of changes is cut off after ten times this. */
  readonly quietMs: number;
  readonly log: SourceLog;
  /** Chokidar's `watch`; tests give one that fails. */
  readonly watch?: (path: string, options: ChokidarOptions) => FSWatcher;
}

/** How often it is looked whether the directory is still the same one: chokidar loses one that is replaced. One `stat` each. */
const HEARTBEAT_MS = 500;
const POLLING_MS = 500;
const LONGEST_WAIT_FACTOR = 10;

/** Until the signal aborts. */
export function watchDirectory(options: WatchDirectoryOptions, onQuiet: () => void, signal: AbortSignal): void {
  const { directory, log } = options;
  const quiet = createQuietTimer(options.quietMs, onQuiet);
  let watcher: FSWatcher | undefined;
  let identity: string | undefined;
  let polling = false;
  let looking = false;

  const close = () => {
    void watcher?.close().catch(() => undefined);
    watcher = undefined;
  };
  const failed = (error: unknown) => {
    if (signal.aborted || polling) return;
    polling = true;
    log.warn(
      { directory, code: codeOf(error), error: messageOf(error) },
      `Watching "${directory}" failed; polling it twice a second instead. On Linux, raise "fs.inotify.max_user_watches" or "fs.inotify.max_user_instances"`,
    );
    close();
    start();
    quiet.stir();
  };
  const start = () => {
    try {
      watcher = (options.watch ?? watchFiles)(directory, chokidarOptions(directory, polling));
    } catch (error) {
      failed(error);
      return;
    }
    watcher.on('all', quiet.stir).on('error', failed);
    // Changes between the last read and the moment the watch stands would be lost otherwise.
    watcher.on('ready', quiet.stir);
  };
  const look = async () => {
    if (looking) return;
    looking = true;
    const present = await identityOf(directory);
    looking = false;
    if (signal.aborted || present === identity) return;
    identity = present;
    close();
    if (present !== undefined) start();
    quiet.stir();
  };

  if (signal.aborted) return;
  void look();
  const heartbeat = setInterval(() => void look(), HEARTBEAT_MS);
  heartbeat.unref();
  signal.addEventListener('abort', () => {
    clearInterval(heartbeat);
    quiet.stop();
    close();
  });
}

function chokidarOptions(directory: string, polling: boolean): ChokidarOptions {
  return {
    depth: 0,
    ignoreInitial: true,
    ignorePermissionErrors: true,
    persistent: false,
    // Our own quiet period does what this would do, a hundred milliseconds sooner.
    atomic: false,
    backend: polling ? 'polling' : 'native',
    pollingInterval: POLLING_MS,
    // Kubernetes swaps a directory by its link "..data".
    ignored: (path) => path !== directory && !path.endsWith('.toml') && !/(^|[/\\])\.\.[^/\\]*$/.test(path),
  };
}

/** Undefined: not there. The same path with another identity is another directory. */
async function identityOf(directory: string): Promise<string | undefined> {
  const facts = await stat(directory, { bigint: true }).catch((): BigIntStats | undefined => undefined);
  return facts?.isDirectory() === true ? `${facts.dev}:${facts.ino}:${facts.birthtimeNs}` : undefined;
}

function createQuietTimer(quietMs: number, onQuiet: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let since = 0;
  let stopped = false;
  const stop = () => {
    stopped = true;
    clearTimeout(timer);
  };
  const stir = () => {
    if (stopped) return;
    const now = performance.now();
    if (timer === undefined) since = now;
    const restMs = Math.max(0, since + quietMs * LONGEST_WAIT_FACTOR - now);
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        timer = undefined;
        onQuiet();
      },
      Math.min(quietMs, restMs),
    );
    timer.unref();
  };
  return { stir, stop };
}
