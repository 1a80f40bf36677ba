/**
 * A stand-in for the server of FastFlowLM (`flm serve`). It speaks its dialect with everything that is odd about it:
 *
 * - Errors have the status 200 and are `{"error": "text"}` or an object; only a code of 400 becomes the status. What was not loaded is answered with `null`.
 * - One request computes at a time, the others wait in a queue; beyond its length they get 503. More connections than allowed are closed without a word.
 * - A client that leaves while its request computes or waits crashes the process, and so may cancelling it, and a preflight of a browser.
 * - The name of another model in a chat unloads the present model and downloads the other one.
 * - Paths are compared with their query. Each connection is closed after its answer, although it was said to stay open.
 * - A `request_id` that is no text ends a thread: the NPU is never free again. Names of headers of parts of forms are compared by case.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CHAT_MODELS } from './model-list.ts';

export interface FlmOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Undefined: no model for chats. */
  readonly model?: string | undefined;
  readonly asr?: boolean;
  readonly embed?: boolean;
  /** Default, as that of the real one: 10. */
  readonly connections?: number;
  readonly queueLength?: number;
  /** Instead of the process. */
  readonly crash: () => void;
  /** Whether what was computed is nonsense. */
  readonly isBroken?: boolean;
}

export interface Flm {
  readonly port: number;
  /** What happened that should not: models that were downloaded, and why it crashed. */
  readonly mishaps: readonly string[];
  /** What was computed, in order: `chat`, `embedding`, `transcription`. */
  readonly computed: readonly string[];
  /** The texts of each form with a recording. */
  readonly heard: readonly object[];
  /** The most requests that were computed at once. */
  readonly most: () => number;
  close(): Promise<void>;
}

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

const COOLDOWN_MS = 3;

export async function startFlm(options: FlmOptions): Promise<Flm> {
  const { connections = 10, queueLength = 10 } = options;
  const state = { model: options.model, busy: false, active: 0, most: 0 };
  const mishaps: string[] = [];
  const computed: string[] = [];
  const heard: object[] = [];
  const waiting: (() => Promise<void>)[] = [];
  const sockets = new Set<Socket>();

  const mishap = (text: string): void => void mishaps.push(text);
  const crash = (why: string): void => {
    mishap(why);
    for (const socket of sockets) socket.destroy();
    server.close();
    options.crash();
  };

  async function take(task: () => Promise<void>): Promise<void> {
    state.busy = true;
    state.active += 1;
    state.most = Math.max(state.most, state.active);
    try {
      await task();
    } finally {
      state.active -= 1;
    }
    await sleep(COOLDOWN_MS);
    const next = waiting.shift();
    if (next === undefined) state.busy = false;
    else void take(next);
  }

  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => handle({ request, response, body: Buffer.concat(pieces) }));
  });

  function handle(asked: Asked): void {
    const { request, response } = asked;
    const route = `${request.method} ${request.url}`;
    if (request.method === 'OPTIONS') return crash('OPTIONS');
    if (route === 'POST /api/cancel') return crash('Cancelled');
    if (route === 'GET /api/npu/status') {
      const message = state.busy ? 'NPU is currently in use' : 'NPU is available';
      return answer(response, { npu_available: !state.busy, active_requests: state.active, message });
    }
    if (route === 'GET /v1/models') {
      return answer(response, { object: 'list', data: CHAT_MODELS.map((id) => ({ id, object: 'model', owned_by: 'FastFlowLM' })) });
    }
    const compute = Object.hasOwn(TASKS, route) ? TASKS[route] : undefined;
    if (compute === undefined) return answer(response, { error: 'Not Found' }, 404);
    if (state.busy && waiting.length >= queueLength) {
      return answer(response, { error: `NPU is in use and request queue is full (limit: ${queueLength}). Please try again later.` }, 503);
    }
    let isDone = false;
    response.on('finish', () => (isDone = true));
    request.socket.on('close', () => (isDone ? undefined : crash(`The client of ${route} left`)));
    const task = async (): Promise<void> => compute(asked);
    if (state.busy) waiting.push(task);
    else void take(task);
  }

  async function chat({ body, response }: Asked): Promise<void> {
    const asked = parse(body);
    if ('request_id' in asked && typeof asked['request_id'] !== 'string') {
      mishap('A thread ended');
      await new Promise(() => undefined);
    }
    const { model = state.model } = asked;
    if (model !== state.model) {
      mishap(`Downloads ${JSON.stringify(model)}`);
      state.model = CHAT_MODELS.find((each) => each === model) ?? 'llama3.2:1b';
    }
    const messages = Array.isArray(asked['messages']) ? asked['messages'] : [];
    const last = JSON.stringify(messages.at(-1)?.content ?? '');
    const said = last.replaceAll('"', '');
    if (said.includes('too long')) {
      return answer(response, { error: { message: 'Max length reached!', type: 'model_error', code: 400 } }, 400);
    }
    if (said.includes('throw')) return answer(response, { error: { message: 'bad_alloc', type: 'server_error', code: 500 } });
    if (said.includes('single')) return answer(response, { error: 'This model only supports single-turn requests.' });
    await sleep(Number(/wait (\d+)/.exec(said)?.[1] ?? 0));
    computed.push('chat');
    const words = options.isBroken === true ? [] : ['You', ' said:', ` ${said}`];
    const facts = { id: 'fastflowlm-chat-completion', created: 1_795_000_000, model };
    const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
    if (asked['stream'] !== true) {
      const message = { role: 'assistant', content: words.join('') };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      return answer(response, { ...facts, object: 'chat.completion', choices, usage, service_tier: 'default' });
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'keep-alive' });
    const chunk = { ...facts, object: 'chat.completion.chunk' };
    for (const content of words) {
      response.write(
        `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] })}\n\n`,
      );
      await sleep(Number(/pace (\d+)/.exec(said)?.[1] ?? 1));
    }
    response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage })}\n\n`);
    response.end('data: [DONE]\n\n');
    closeAfter(response);
  }

  async function embed({ body, response }: Asked): Promise<void> {
    const asked = parse(body);
    if (typeof asked['model'] !== 'string') return answer(response, { error: 'type must be string, but is null' });
    const inputs = Array.isArray(asked['input']) ? asked['input'] : [asked['input']];
    if (inputs.some((each) => typeof each !== 'string')) return answer(response, { error: 'type must be string, but is number' });
    if (options.embed !== true) return answer(response, null);
    computed.push('embedding');
    const data = inputs.map((text: string, index: number) => ({
      object: 'embedding',
      embedding: options.isBroken === true ? [0, 0, 0] : [text.length, 0.5, -0.25],
      index,
    }));
    return answer(response, { object: 'list', data, model: asked['model'], usage: { prompt_tokens: 0, total_tokens: 0 } });
  }

  async function transcribe({ request, body, response }: Asked): Promise<void> {
    const parts = parseForm(String(request.headers['content-type']), body);
    const file = parts.get('file') ?? Buffer.alloc(0);
    if (options.asr !== true) return answer(response, null);
    if (file.toString('latin1', 0, 4) !== 'RIFF') {
      return answer(response, { error: { message: 'Failed to decode audio', type: 'server_error', code: 500 } });
    }
    computed.push('transcription');
    heard.push(Object.fromEntries([...parts].filter(([name]) => name !== 'file').map(([name, value]) => [name, value.toString('utf8')])));
    return answer(response, { model: String(parts.get('model') ?? ''), text: ` Heard ${file.length} bytes.` });
  }

  const TASKS: Readonly<Record<string, (asked: Asked) => Promise<void>>> = {
    'POST /v1/chat/completions': chat,
    'POST /v1/embeddings': embed,
    'POST /v1/audio/transcriptions': transcribe,
  };

  server.on('connection', (socket) => {
    if (sockets.size >= connections) return void socket.destroy();
    sockets.add(socket);
    socket.on('error', () => undefined);
    return socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(options.port, options.host, resolve));
  return {
    port: portOf(server.address()),
    mishaps,
    computed,
    heard,
    most: () => state.most,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function answer(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
  closeAfter(response);
}

function closeAfter(response: ServerResponse): void {
  response.on('finish', () => response.socket?.end());
}

function parse(body: Buffer): Record<string, unknown> {
  const value: unknown = JSON.parse(body.toString());
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** As the server does it: a boundary without quotes at the end of the header, and names of headers in one spelling. */
function parseForm(contentType: string, body: Buffer): ReadonlyMap<string, Buffer> {
  const boundary = `--${contentType.slice(contentType.indexOf('boundary=') + 9)}`;
  const parts = new Map<string, Buffer>();
  for (let start = body.indexOf(boundary); start !== -1;) {
    const end = body.indexOf(boundary, start + boundary.length);
    if (end === -1) break;
    const part = body.subarray(start + boundary.length + 2, end - 2);
    const headerEnd = part.indexOf('\r\n\r\n');
    const name = /Content-Disposition: form-data;[^]*?name="([^"]*)"/.exec(part.toString('latin1', 0, Math.max(0, headerEnd)))?.[1];
    if (name !== undefined) parts.set(name, part.subarray(headerEnd + 4));
    start = end;
  }
  return parts;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('It does not listen');
  return address.port;
}
