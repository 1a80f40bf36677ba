/** Keeps the process of the engine running, and gives it one piece of work at a time. */
import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import path from 'node:path';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import type { Answer, ListenOrder, LoadOrder, Order, SpeakOrder } from './messages.ts';
import { createSharedSound } from './shared-sound.ts';
import { createTurns } from './turns.ts';

export interface Heard {
  readonly text: string;
  readonly language: string;
  readonly tokens: readonly string[];
  readonly timestamps: readonly number[];
}

/** One piece of a recording. Nothing may change `samples` until the engine has answered. */
export type Listening = Omit<ListenOrder, 'kind' | 'samples'> & { readonly samples: Float32Array };

export type EngineState = 'loading' | 'ready' | 'restarting' | 'stopped';

export interface Engine {
  state(): EngineState;
  /** Process id of the engine, for tests that kill it. */
  pid(): number | undefined;
  listen(piece: Listening, signal: AbortSignal): Promise<Heard>;
  /** Calls `onSamples` with each part of the sound as 16-bit samples. */
  speak(order: SpeakOrder, onSamples: (pcm: Uint8Array) => void, signal: AbortSignal): Promise<void>;
  stop(): void;
  /** Resolves when the model has been loaded for the first time. */
  readonly loaded: Promise<void>;
  /** Resolves with a message when the model cannot be loaded, or the engine does not stay up. */
  readonly failed: Promise<string>;
}

export interface EngineOptions {
  readonly order: LoadOrder;
  /** Directory for the samples that the engine is given. */
  readonly directory: string;
  /** A piece of work that takes longer ends the process: a computation cannot be interrupted otherwise. */
  readonly pieceMs: number;
  readonly log: (message: string) => void;
}

/** After so many starts without a success, the server gives up, and whoever runs it decides. */
const MOST_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/** Loading a large model from a slow disk takes minutes, but not more. */
const LOAD_MS = 600_000;
/** The library writes texts of users to its error output, so that only the end is kept, and only shown if loading fails. */
const QUOTED_CHARACTERS = 600;
const programOf = ({ engine }: LoadOrder): string =>
  path.join(import.meta.dirname, engine.kind === 'whisper' ? 'whisper-process.ts' : 'engine-process.ts');

const CRASHED: Refusal = {
  status: 500,
  code: 'engine.crashed',
  message: 'Change the input, or choose another model: the engine crashed twice while it processed this request, and starts again now',
};
const TOO_SLOW: Refusal = {
  status: 504,
  code: 'engine.timeout',
  message: 'Send less at once: the engine needed too long for a part of this request',
};
const STOPPING: Refusal = {
  status: 503,
  code: 'engine.stopping',
  message: 'Send the request again: the server is stopping',
  retryAfter: 1,
};

interface Work {
  readonly onAnswer: (answer: Answer) => void;
  readonly onEnd: (refusal: Refusal) => void;
}

export function createEngine({ order: load, directory, pieceMs, log }: EngineOptions): Engine {
  const turns = createTurns(1, Number.POSITIVE_INFINITY);
  const sound = createSharedSound(directory);
  const failed = Promise.withResolvers<string>();
  let child: ChildProcess | undefined;
  let work: Work | undefined;
  let state: EngineState = 'loading';
  let ready = Promise.withResolvers<void>();
  let attempts = 0;
  let whyKilled: Refusal | undefined;

  const start = (): void => {
    attempts += 1;
    let output = '';
    const started = fork(programOf(load), [], {
      // A group of its own, so that what it has started ends with it.
      detached: true,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc', sound.fd],
      // It frees what V8 does not see, see `listen()` there.
      execArgv: ['--disable-warning=ExperimentalWarning', '--expose-gc'],
      env: { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
    });
    child = started;
    const tooLong = setTimeout(() => killGroup(started), LOAD_MS);
    started.stderr?.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-QUOTED_CHARACTERS)));
    started.on('message', (answer: Answer) => {
      if (answer.kind === 'loaded') {
        clearTimeout(tooLong);
        attempts = 0;
        state = 'ready';
        ready.resolve();
      } else if (work !== undefined) work.onAnswer(answer);
      else if (answer.kind === 'failed') failed.resolve(answer.message);
    });
    started.on('error', (error) => (output += error.message));
    started.on('exit', () => killGroup(started));
    started.on('close', (code, signal) => {
      clearTimeout(tooLong);
      void ended(describeEnd(code, signal, output));
    });
    started.send(load);
  };

  const ended = async (why: string): Promise<void> => {
    if (state === 'stopped') return;
    const first = state === 'loading';
    if (state === 'ready') ready = Promise.withResolvers<void>();
    state = first ? 'loading' : 'restarting';
    work?.onEnd(whyKilled ?? CRASHED);
    whyKilled = undefined;
    // The model has never been loaded, or does not load any more.
    if (first || attempts >= MOST_ATTEMPTS) return failed.resolve(why);
    log(`warning: The engine stopped and is started again: ${why.split('\n', 1)[0]}`);
    await sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempts));
    if (state === 'restarting') start();
  };

  /** Gives the engine one order and waits for its last answer. */
  const attempt = async (give: () => Promise<Order>, handle: (answer: Answer) => boolean, signal: AbortSignal): Promise<void> => {
    const order = await give();
    await abortable(ready.promise, signal);
    return new Promise<void>((resolve, reject) => {
      const slow = setTimeout(() => {
        whyKilled = TOO_SLOW;
        killGroup(child);
      }, pieceMs);
      const cancel = (): void => void child?.send({ kind: 'cancel' });
      const finish = (settle: () => void): void => {
        clearTimeout(slow);
        signal.removeEventListener('abort', cancel);
        work = undefined;
        settle();
      };
      work = {
        onAnswer(answer) {
          // A client that has left gets nothing, but the engine is busy until it answers.
          if (answer.kind === 'failed') finish(() => reject(signal.aborted ? signal.reason : new Error(answer.message)));
          else if (handle(answer)) finish(() => (signal.aborted ? reject(signal.reason) : resolve()));
        },
        onEnd: (refusal) => finish(() => reject(new RefusalError(refusal))),
      };
      signal.addEventListener('abort', cancel, { once: true });
      // If the process has just ended, its end follows.
      child?.send(order, () => undefined);
    });
  };

  /**
   * Runs one order, which `give` returns for each attempt. `handle` gets each answer, and returns whether it was the last one. If the engine crashes before the first answer, the
   * order is given once more: something else may have ended its process.
   */
  const run = async (give: () => Promise<Order>, handle: (answer: Answer) => boolean, signal: AbortSignal): Promise<void> => {
    const place = turns.enter();
    let answered = false;
    const noted = (answer: Answer): boolean => {
      answered = true;
      return handle(answer);
    };
    try {
      await place?.turn(signal);
      try {
        await attempt(give, noted, signal);
      } catch (error) {
        const again = error instanceof RefusalError && error.refusal === CRASHED && !answered && !signal.aborted;
        if (!again) throw error;
        await attempt(give, noted, signal);
      }
    } finally {
      place?.leave();
    }
  };

  start();
  return {
    state: () => state,
    pid: () => child?.pid,
    loaded: ready.promise,
    failed: failed.promise,
    async listen({ samples, ...rest }, signal) {
      const heard = Promise.withResolvers<Heard>();
      await run(
        async () => {
          await sound.write(samples);
          return { kind: 'listen', ...rest, samples: samples.length };
        },
        (answer) => {
          if (answer.kind === 'heard') heard.resolve(answer);
          return answer.kind === 'heard';
        },
        signal,
      );
      return heard.promise;
    },
    async speak(next, onSamples, signal) {
      await run(
        async () => next,
        (answer) => {
          if (answer.kind === 'samples' && !signal.aborted) onSamples(answer.pcm);
          return answer.kind === 'spoken';
        },
        signal,
      );
    },
    stop() {
      state = 'stopped';
      work?.onEnd(STOPPING);
      killGroup(child);
    },
  };
}

/** Also what it has started itself, and has outlived it. */
function killGroup(child: ChildProcess | undefined): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}

function describeEnd(code: number | null, signal: string | null, output: string): string {
  const how = signal === null ? `exit code ${code}` : signal;
  return `its process ended with ${how}${output.trim() === '' ? '' : `\n${output.trim()}`}`;
}

async function abortable(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
