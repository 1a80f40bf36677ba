/** The HTTP server: the paths and formats of llama-server for an engine that may still be loading. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Flags } from './decide/parse-flags.ts';
import {
  parseBody,
  parseChat,
  parseCompletion,
  parseEmbedding,
  parseRerank,
  refuse,
  type Generation,
  type Outcome,
  type Refusal,
  type TextInput,
} from './decide/parse-request.ts';
import {
  chunkBody,
  embeddingsBody,
  errorBody,
  modelsBody,
  rerankBody,
  usageChunkBody,
  wholeBody,
  type Head,
} from './decide/format-response.ts';
import type { Engine } from './engine.ts';

export interface EngineServer {
  readonly http: Server;
  ready(engine: Engine): void;
  /** Aborts all requests and resolves when they have ended. */
  stop(): Promise<void>;
}

/** A reader this far behind holds its place up; a slower one than that would keep others waiting for it. */
const STREAM_BUFFER_BYTES = 1024 * 1024;
const BODY_LIMIT_BYTES = 64 * 1024 * 1024;

type Body = Readonly<Record<string, unknown>>;
interface Exchange {
  readonly engine: Engine;
  readonly flags: Flags;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}
type Route = (body: Body, exchange: Exchange) => Promise<Refusal | undefined>;

const LOADING: Refusal = { status: 503, type: 'unavailable_error', message: 'Loading model' };
const NOT_FOUND: Refusal = { status: 404, type: 'not_found_error', message: 'File Not Found' };
const TOO_LARGE: Refusal = { status: 413, type: 'invalid_request_error', message: `Send a body of at most ${BODY_LIMIT_BYTES} bytes` };

const unsupported: Route = async () =>
  refuse(422, 'not_supported_error', 'Install llama-server to use this API: the embedded engine does not support it').refusal;

const POST_ROUTES: Readonly<Record<string, Route>> = {
  '/v1/chat/completions': chat,
  '/chat/completions': chat,
  '/v1/completions': complete,
  '/v1/embeddings': embed,
  '/v1/rerank': rerank,
  '/v1/reranking': rerank,
  '/rerank': rerank,
  '/reranking': rerank,
  '/tokenize': tokenize,
  '/v1/responses': unsupported,
  '/v1/messages': unsupported,
  '/v1/messages/count_tokens': unsupported,
};

export function createEngineServer(flags: Flags, nowMs: () => number): EngineServer {
  let engine: Engine | undefined;
  const running = new Set<{ readonly abort: AbortController; readonly done: Promise<void> }>();
  const http = createServer({ highWaterMark: STREAM_BUFFER_BYTES }, (request, response) => {
    const abort = new AbortController();
    response.on('close', () => abort.abort());
    const entry = { abort, done: answer(request, response, abort.signal).catch((error: unknown) => fail(response, error)) };
    running.add(entry);
    void entry.done.finally(() => running.delete(entry));
  });
  // Generating may take long without sending anything; llama-server allows an hour.
  http.requestTimeout = 3_600_000;

  async function answer(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    if (engine === undefined) return send(response, LOADING.status, errorBody(LOADING));
    if (request.method === 'GET') {
      if (path === '/health' || path === '/v1/health') return send(response, 200, { status: 'ok' });
      if (path === '/v1/models' || path === '/models') {
        return send(response, 200, modelsBody(flags.alias, flags.aliases, Math.floor(nowMs() / 1000), engine.context));
      }
    }
    const route = request.method === 'POST' && Object.hasOwn(POST_ROUTES, path) ? POST_ROUTES[path] : undefined;
    if (route === undefined) return send(response, NOT_FOUND.status, errorBody(NOT_FOUND));
    const text = await readText(request);
    if (text === undefined) return send(response, TOO_LARGE.status, errorBody(TOO_LARGE));
    const body = parseBody(text);
    const refusal = body.ok ? await route(body.value, { engine, flags, response, signal }) : body.refusal;
    if (refusal !== undefined) send(response, refusal.status, errorBody(refusal));
  }

  return {
    http,
    ready(loaded) {
      engine = loaded;
    },
    async stop() {
      http.close();
      const ends = [...running].map((entry) => entry.done);
      for (const entry of running) entry.abort.abort();
      await Promise.all(ends);
      http.closeAllConnections();
    },
  };
}

async function chat(body: Body, exchange: Exchange): Promise<Refusal | undefined> {
  const parsed = parseChat(body);
  if (!parsed.ok) return parsed.refusal;
  const prompt = await exchange.engine.prompt(parsed.value.messages);
  return prompt.ok ? generate('chat', prompt.value, parsed.value, exchange) : prompt.refusal;
}

async function complete(body: Body, exchange: Exchange): Promise<Refusal | undefined> {
  const parsed = parseCompletion(body);
  return parsed.ok ? generate('completion', parsed.value.prompt, parsed.value, exchange) : parsed.refusal;
}

async function generate(kind: Head['kind'], prompt: TextInput, options: Generation, exchange: Exchange): Promise<Refusal | undefined> {
  const { engine, flags, response, signal } = exchange;
  const id = `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${randomUUID().replaceAll('-', '')}`;
  const head: Head = { id, created: Math.floor(Date.now() / 1000), model: flags.alias, kind };
  if (!options.stream) {
    const done = await engine.generate(prompt, options.sampling, async () => {}, signal);
    if (!done.ok) return done.refusal;
    send(response, 200, wholeBody(head, done.value.text, done.value.finish, done.value.usage));
    return undefined;
  }
  const event = async (data: object | '[DONE]'): Promise<void> => {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', 'cache-control': 'no-cache' });
    const room = response.write(`data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`);
    if (!room && !signal.aborted) await once(response, 'drain', { signal }).catch(() => undefined);
  };
  const open = async (): Promise<void> => {
    if (!response.headersSent && kind === 'chat') await event(chunkBody(head, { open: true }));
  };
  const done = await engine.generate(
    prompt,
    options.sampling,
    async (text) => {
      await open();
      await event(chunkBody(head, { text }));
    },
    signal,
  );
  if (!done.ok) return signal.aborted ? undefined : done.refusal;
  await open();
  await event(chunkBody(head, { finish: done.value.finish }));
  if (options.includeUsage) await event(usageChunkBody(head, done.value.usage));
  await event('[DONE]');
  response.end();
  return undefined;
}

async function embed(body: Body, { engine, flags, response, signal }: Exchange): Promise<Refusal | undefined> {
  const parsed = parseEmbedding(body);
  if (!parsed.ok) return parsed.refusal;
  return finish(response, await engine.embed(parsed.value.inputs, signal), (done) =>
    embeddingsBody(flags.alias, done.vectors, done.tokens, parsed.value.base64),
  );
}

async function rerank(body: Body, { engine, flags, response, signal }: Exchange): Promise<Refusal | undefined> {
  const parsed = parseRerank(body);
  if (!parsed.ok) return parsed.refusal;
  const done = await engine.rerank(parsed.value.query, parsed.value.documents, signal);
  return finish(response, done, (scored) => rerankBody(flags.alias, scored.scores, parsed.value.topN, scored.tokens));
}

async function tokenize(body: Body, { engine, response }: Exchange): Promise<Refusal | undefined> {
  if (typeof body['content'] !== 'string') return refuse(400, 'invalid_request_error', 'Set "content" to a string').refusal;
  send(response, 200, { tokens: engine.tokenize(body['content'], body['add_special'] === true) });
  return undefined;
}

function finish<T>(response: ServerResponse, done: Outcome<T>, body: (value: T) => object): Refusal | undefined {
  if (!done.ok) return done.refusal;
  send(response, 200, body(done.value));
  return undefined;
}

/** Returns undefined if the body is larger than the limit. */
async function readText(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_LIMIT_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, status: number, body: object): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': bytes.length });
  response.end(bytes);
}

function fail(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return;
  const refusal: Refusal = { status: 500, type: 'server_error', message: error instanceof Error ? error.message : String(error) };
  process.stderr.write(`error: ${refusal.message}\n`);
  if (!response.headersSent) return send(response, refusal.status, errorBody(refusal));
  // Within a stream, an error can only be sent as an event. OpenAI clients support this format.
  response.end(`data: ${JSON.stringify(errorBody(refusal))}\n\n`);
}
