/**
 * The process that computes with whisper.cpp's server, for models in its own format: it starts `whisper-server`, gives it one piece of a recording at a time, and translates
 * between the two. It ends when that server ends, and takes it along.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readWhisperAnswer, whisperFlags, whisperForm } from './decide/ask-whisper.ts';
import type { Answer, ListenOrder, LoadOrder, Order } from './messages.ts';
import { openSharedSound, type SharedSoundReader } from './shared-sound.ts';

const PROGRAM = 'whisper-server';
const LOOK_EVERY_MS = 50;
/** The last lines that it wrote say why it ended. */
const QUOTED_CHARACTERS = 600;
const MISSING = `Install whisper.cpp, or choose a model of another format: the program "${PROGRAM}", which this model needs, is not on the PATH`;

interface Whisper {
  readonly url: string;
  readonly child: ChildProcess;
  readonly sound: SharedSoundReader;
}

function send(answer: Answer): void {
  process.send?.(answer);
}

async function start({ directory, threads }: LoadOrder): Promise<Whisper> {
  const port = await freePort();
  const path = `/${randomUUID()}`;
  const child = spawn(PROGRAM, whisperFlags({ model: directory, port, path, threads }), { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-QUOTED_CHARACTERS)));
  const ended = new Promise<never>((_, reject) => {
    child.on('error', () => reject(new Error(MISSING)));
    child.on('close', (code, signal) => reject(new Error(`"${PROGRAM}" ended with ${signal ?? `exit code ${code}`}\n${output.trim()}`)));
  });
  const url = `http://127.0.0.1:${port}${path}`;
  let waiting = true;
  const untilItListens = async (): Promise<void> => {
    while (waiting && !(await listens(url))) await sleep(LOOK_EVERY_MS);
  };
  try {
    await Promise.race([untilItListens(), ended]);
  } finally {
    waiting = false;
  }
  ended.catch((error: unknown) => {
    process.stderr.write(error instanceof Error ? error.message : String(error));
    process.exit(1);
  });
  return { url, child, sound: openSharedSound() };
}

/** It listens once the model is loaded. */
async function listens(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    ({ status }) => status === 200,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** A server that breaks the connection has ended, or is no use any more: this process ends with it instead of answering, so that the order is given once more. */
async function ask(
  { url, child, sound }: Whisper,
  order: ListenOrder,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const response = await fetch(`${url}/inference`, {
      method: 'POST',
      body: whisperForm({ ...order, samples: sound.read(order.samples) }),
      signal,
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    if (!signal.aborted) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    throw error;
  }
}

async function listen(whisper: Whisper, order: ListenOrder, signal: AbortSignal): Promise<void> {
  const { status, text } = await ask(whisper, order, signal);
  const heard = status === 200 ? readWhisperAnswer(text) : undefined;
  if (heard === undefined) throw new Error(`"${PROGRAM}" answered with HTTP status ${status}`);
  send({ kind: 'heard', ...heard });
}

function main(): void {
  let whisper: Whisper | undefined;
  let abort = new AbortController();
  const obey = async (order: Order): Promise<void> => {
    if (order.kind === 'load') {
      whisper = await start(order);
      send({ kind: 'loaded' });
      // It may end by force.
      flushCompileCache();
    } else if (whisper === undefined || order.kind !== 'listen') throw new Error('No model is loaded that could do this');
    else await listen(whisper, order, abort.signal);
  };
  process.on('message', (order: Order) => {
    if (order.kind === 'cancel') return abort.abort(new Error('The client has left'));
    abort = new AbortController();
    obey(order).catch((error: unknown) => send({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }));
  });
  // The speech server has ended.
  process.on('disconnect', () => {
    whisper?.child.kill('SIGKILL');
    process.exit(0);
  });
}

main();
