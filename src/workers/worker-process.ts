/** One process of the pool, from its start to its end, as the controller sees it. It is started again when it ends. */
import { fork, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { messageOf } from '../platform/error-text.ts';
import type { Log } from '../platform/log.ts';
import { restartDelay } from './decide/restart-delay.ts';
import type { FromWorker, ToWorker, WorkerReport, WorkerStart } from './messages.ts';

export interface WorkerProcessDeps {
  /** Of the worker: from 1. */
  readonly number: number;
  /** The file that it runs. */
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  readonly start: () => WorkerStart;
  readonly onStarted: () => void;
  readonly onReport: (report: WorkerReport) => void;
  readonly onConnection: (socket: Socket, bytes: Uint8Array) => void;
  readonly onFault: (fault: Extract<FromWorker, { kind: 'fault' }>) => void;
  /** It has ended. Everything that it had is gone. */
  readonly onGone: () => void;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
}

export interface WorkerProcess {
  /** Does nothing while there is no process. */
  tell(message: ToWorker): void;
  exists(): boolean;
  /** Whether there is a process that listens. */
  isUp(): boolean;
  kill(): void;
  /** It is not started again when it ends. */
  retire(): void;
  /** Resolves when there is no process any more. To be called after `retire`. */
  readonly ended: Promise<void>;
  /** Resolves when it listens for the first time, or has failed. */
  readonly settled: Promise<void>;
}

export function runWorkerProcess(deps: WorkerProcessDeps): WorkerProcess {
  const { number, file, env, log } = deps;
  const ended = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  let child: ChildProcess | undefined;
  let listens = false;
  let retired = false;
  let failures = 0;
  let restart: NodeJS.Timeout | undefined;

  function tell(message: ToWorker): void {
    // An error means that it has just ended.
    if (child?.connected === true) child.send(message, () => undefined);
  }

  function take(message: FromWorker, socket: Socket | undefined): void {
    switch (message.kind) {
      case 'listening':
        listens = true;
        settled.resolve();
        return;
      case 'report':
        return deps.onReport(message);
      case 'connection':
        // Without a socket: it was closed on its way.
        if (socket !== undefined) deps.onConnection(socket, message.bytes);
        return;
      case 'fault':
        return deps.onFault(message);
      case 'ended':
        return;
      default:
        message satisfies never;
    }
  }

  function begin(): void {
    const startedAt = performance.now();
    // Standard error is inherited, for what Node prints when a process crashes.
    const started = fork(file, [], { env, execArgv: [], serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    child = started;
    started.on('message', (message: FromWorker, socket) => take(message, isSocket(socket) ? socket : undefined));
    started.on('error', (error) => log.error({ worker: number }, `Cannot talk to worker ${number}: ${messageOf(error)}`));
    started.once('exit', (code, signal) => {
      child = undefined;
      listens = false;
      settled.resolve();
      deps.onGone();
      if (retired) {
        ended.resolve();
        return;
      }
      const { delayMs, earlier } = restartDelay(failures, performance.now() - startedAt);
      failures = earlier;
      const how = signal ?? `exit code ${code}`;
      log.warn(
        { worker: number, pid: started.pid, how, delayMs },
        `Worker ${number} has ended (${how}), with the connections that it had; it is started again in ${delayMs} ms`,
      );
      restart = setTimeout(begin, delayMs);
    });
    tell({ kind: 'start', ...deps.start() });
    deps.onStarted();
  }
  begin();

  return {
    tell,
    exists: () => child !== undefined,
    isUp: () => listens,
    kill: () => void child?.kill('SIGKILL'),
    retire() {
      retired = true;
      clearTimeout(restart);
      if (child === undefined) ended.resolve();
    },
    ended: ended.promise,
    settled: settled.promise,
  };
}

function isSocket(handle: unknown): handle is Socket {
  return typeof handle === 'object' && handle !== null && 'remoteAddress' in handle;
}
