/** Starts the speech server with the real library, as a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installSpeechModules } from './speech-modules.ts';

const MAIN = path.resolve(import.meta.dirname, '../../../toolboxes/speech/main.ts');

export interface RunningSpeechServer {
  readonly url: string;
  readonly pid: number;
  /** Process id of the engine. */
  enginePid(): Promise<number>;
  output(): string;
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM and resolves to the exit code. */
  stop(): Promise<number | null>;
}

export interface SpeechServerOptions {
  readonly flags?: readonly string[];
  /** Directory for uploads. */
  readonly temporary?: string;
}

/** Does not wait until the model is loaded. */
export async function startSpeechServer(
  task: 'stt' | 'tts',
  model: string,
  { flags: more = [], temporary = tmpdir() }: SpeechServerOptions = {},
): Promise<RunningSpeechServer> {
  const modules = await installSpeechModules();
  const flags = ['--task', task, '--model', model, '--port', '0', '--modules', modules, '--threads', '1', ...more];
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(process.execPath, [MAIN, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env });
  let output = '';
  const listening = Promise.withResolvers<string>();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const url = /listening on (\S+)/.exec(output)?.[1];
      if (url !== undefined) listening.resolve(url);
    });
  const ended = once(child, 'close').then(([code]) => (typeof code === 'number' ? code : null));
  const { pid = 0 } = child;
  const url = await Promise.race([listening.promise, ended.then(() => Promise.reject(new Error(`The server ended: ${output}`)))]);
  return {
    url,
    pid,
    ended,
    output: () => output,
    async enginePid() {
      const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
      return Number(children.trim().split(/\s+/)[0]);
    },
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export async function untilHealth({ url }: RunningSpeechServer, status: string): Promise<void> {
  for (;;) {
    const health = await (await fetch(`${url}/health`)).text();
    if (health === JSON.stringify({ status })) return;
    await sleep(20);
  }
}

export async function transcribe(
  { url }: RunningSpeechServer,
  sound: Uint8Array,
  fields: Readonly<Record<string, string>> = {},
  route = 'transcriptions',
): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append('file', new Blob([Buffer.from(sound)]), 'sound.wav');
  const response = await fetch(`${url}/v1/audio/${route}`, { method: 'POST', body: form });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

export async function speak({ url }: RunningSpeechServer, body: object | string, signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/v1/audio/speech`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}
