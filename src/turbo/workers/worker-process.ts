/** One process of the pool. It is started again when it ends. */
import { fork, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { messageOf } from '../../platform/error-text.ts';
import type { TakeCaptured } from '../../gateway/capture/capture-taps.ts';
import type { Log } from '../../platform/log.ts';
import type { FromWorker, LimitAnswer, LimitAsk, LimitReport, ToWorker, WorkerReport, WorkerStart } from './messages.ts';

interface WorkerProcessDeps {
  readonly number: number;
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  readonly start: () => WorkerStart;
  readonly onStarted: () => void;
  readonly onListening: () => void;
  readonly onReport: (report: WorkerReport) => void;
  readonly onConnection: (socket: Socket, bytes: Uint8Array) => void;
  readonly onFault: (fault: Extract<FromWorker, { kind: 'fault' }>) => void;
  readonly onCaptured: TakeCaptured;
  readonly onLimitAsk: (ask: LimitAsk) => LimitAnswer | Promise<LimitAnswer>;
  readonly onLimitReport: (report: LimitReport) => void;
  readonly onGone: () => void;
  readonly log: Pick<Log, 'warn' | 'error'>;
}

export class WorkerProcess {
  readonly #deps: WorkerProcessDeps;
  readonly #ended = Promise.withResolvers<void>();
  readonly #settled = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #listens = false;
  #isRetired = false;
  #earlierEnds = 0;
  #restart: NodeJS.Timeout | undefined;

  constructor(deps: WorkerProcessDeps) {
    this.#deps = deps;
    this.#begin();
  }

  get exists(): boolean {
    return this.#child !== undefined;
  }

  get listens(): boolean {
    return this.#listens;
  }

  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  send(message: ToWorker): void {
    // An error means that it has just ended.
    if (this.#child?.connected === true) this.#child.send(message, () => undefined);
  }

  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  /** It is not started again when it ends. Resolves when there is no process any more. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    clearTimeout(this.#restart);
    if (this.#child === undefined) this.#ended.resolve();
    await this.#ended.promise;
  }

  #begin(): void {
    const { number, file, env, start, onStarted, log } = this.#deps;
    const startedAt = performance.now();
    // Standard error is inherited, for what Node prints when a process crashes.
    const child = fork(file, [], { env, execArgv: [], serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child = child;
    child.on('message', (message: FromWorker, socket) => this.#take(message, isSocket(socket) ? socket : undefined));
    child.on('error', (error) => {
      // No process means no exit event: the system could not create one.
      if (child.pid === undefined) this.#end(messageOf(error), 0);
      else log.error({ worker: number }, `Worker ${number} cannot be reached: ${messageOf(error)}`);
    });
    child.once('exit', (code, signal) => this.#end(signal ?? `exit code ${code}`, performance.now() - startedAt));
    if (child.pid === undefined) return;
    this.send({ kind: 'start', ...start() });
    onStarted();
  }

  #take(message: FromWorker, socket: Socket | undefined): void {
    const { onListening, onReport, onConnection, onFault, onCaptured, onLimitAsk, onLimitReport } = this.#deps;
    switch (message.kind) {
      case 'listening':
        this.#listens = true;
        this.#settled.resolve();
        return onListening();
      case 'report':
        return onReport(message);
      case 'connection':
        // The socket was closed on its way.
        if (socket !== undefined) onConnection(socket, message.bytes);
        return;
      case 'fault':
        return onFault(message);
      case 'captured':
        return onCaptured(message.ids, message.text);
      case 'limits':
        return this.#answerLimits(onLimitAsk(message.ask));
      case 'used':
        return onLimitReport(message.report);
      case 'ended':
        return;
      default:
        message satisfies never;
    }
  }

  #answerLimits(asked: LimitAnswer | Promise<LimitAnswer>): void {
    if (!(asked instanceof Promise)) return this.send({ kind: 'limits', answer: asked });
    const child = this.#child;
    // Another process has not asked.
    void asked.then((answer) => child === this.#child && this.send({ kind: 'limits', answer }));
  }

  #end(how: string, livedMs: number): void {
    const { number, onGone, log } = this.#deps;
    const pid = this.#child?.pid;
    this.#child = undefined;
    this.#listens = false;
    this.#settled.resolve();
    onGone();
    if (this.#isRetired) return this.#ended.resolve();
    const { delayMs, earlier } = restartDelay(this.#earlierEnds, livedMs);
    this.#earlierEnds = earlier;
    const message = `Worker ${number} has ended (${how}), with the connections that it had; it is started again in ${delayMs} ms`;
    log.warn({ worker: number, pid, how, delayMs }, message);
    this.#restart = setTimeout(() => this.#begin(), delayMs);
  }
}

const isSocket = (handle: unknown): handle is Socket => typeof handle === 'object' && handle !== null && 'remoteAddress' in handle;

const FIRST_MS = 100;
/** Starting takes a third of a second of CPU, which is little in this time. */
const LONGEST_MS = 5000;
/** A worker that lived this long starts again without delay. */
const STABLE_MS = 10_000;

/** `earlier`: how often it had ended soon before. Returns the same number for the next call. */
export function restartDelay(earlier: number, livedMs: number): { readonly delayMs: number; readonly earlier: number } {
  const before = livedMs >= STABLE_MS ? 0 : earlier;
  return { delayMs: Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(before, 10)), earlier: before + 1 };
}
