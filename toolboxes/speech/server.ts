/** The HTTP server: OpenAI's paths for speech. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { sendJson, sendRefusal } from './answer.ts';
import type { Flags } from './decide/parse-flags.ts';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import { FULL, handleRoute, NOT_FOUND, STOPPING, type Exchange, type Route } from './routes.ts';
import { describeForModels } from './decide/list-models.ts';
import type { Loaded } from './loaded.ts';
import { createTurns } from './turns.ts';

export interface SpeechServer {
  readonly http: Server;
  ready(loaded: Loaded): void;
  /** Aborts all requests and resolves when they have ended. */
  stop(): Promise<void>;
}

/** Requests that work at once. The engine processes one piece at a time; meanwhile, others read, decode and write. */
const WORKING = 4;
/** Bytes of uploads on disk, at least. */
const DISK_BYTES = 1024 ** 3;
/** Bytes of small uploads in memory, most of which wait for their turn; further ones go to disk. */
const MEMORY_BYTES = 32 * 2 ** 20;
/** What a client may take to send a body. */
const BODY_MS = 600_000;
/** Clients close an idle connection earlier; one that the server closed just when a request is sent would lose that request. */
const IDLE_MS = 75_000;
/** After an early answer, this is how long the rest of a body is thrown away, so that the client gets to read the answer. */
const DISCARD_MS = 2000;

const LOADING: Refusal = {
  status: 503,
  code: 'engine.loading',
  message: 'Send the request again later: the model is loading',
  retryAfter: 2,
};

const ROUTES: Readonly<Record<Flags['task'], Readonly<Record<string, Route>>>> = {
  stt: { '/v1/audio/transcriptions': 'transcribe', '/v1/audio/translations': 'translate' },
  tts: { '/v1/audio/speech': 'speak' },
};

export function createSpeechServer(flags: Flags, now: () => number): SpeechServer {
  const turns = createTurns(WORKING, flags.queue);
  const disk = { used: 0, most: Math.max(DISK_BYTES, 4 * flags.limit) };
  const memory = { used: 0, most: MEMORY_BYTES };
  const running = new Set<{ readonly abort: AbortController; readonly done: Promise<void> }>();
  let loaded: Loaded | undefined;

  const http = createServer((request, response) => {
    const abort = new AbortController();
    response.on('close', () => abort.abort(new Error('The client has left')));
    const entry = { abort, done: answer(request, response, abort.signal).catch((error: unknown) => fail(response, error)) };
    running.add(entry);
    void entry.done.finally(() => {
      running.delete(entry);
      discardRest(request);
    });
  });
  http.requestTimeout = BODY_MS;
  http.keepAliveTimeout = IDLE_MS;

  async function answer(request: IncomingMessage, response: ServerResponse, client: AbortSignal): Promise<void> {
    const [path = '/'] = (request.url ?? '/').split('?', 1);
    if (request.method === 'GET' && path === '/health') return sendHealth(response);
    if (loaded === undefined || loaded.engine.state() === 'loading') return sendRefusal(response, LOADING);
    if (request.method === 'GET' && answerList(path, response, loaded)) return;
    const route = request.method === 'POST' && Object.hasOwn(ROUTES[flags.task], path) ? ROUTES[flags.task][path] : undefined;
    if (route === undefined) return sendRefusal(response, NOT_FOUND);
    const place = turns.enter();
    if (place === undefined) return sendRefusal(response, FULL);
    try {
      const exchange: Exchange = { ...loaded, flags, request, response, client, disk, memory, turn: place.turn };
      await handleRoute(route, exchange);
    } finally {
      place.leave();
    }
  }

  function answerList(path: string, response: ServerResponse, { facts }: Loaded): boolean {
    if (path === '/v1/models') {
      sendJson(response, 200, describeForModels(facts, flags, Math.floor(now() / 1000)));
      return true;
    }
    if (path !== '/v1/audio/voices' || flags.task !== 'tts') return false;
    sendJson(response, 200, { voices: facts.voices.map(({ name, language }) => ({ id: name, name, language })) });
    return true;
  }

  function sendHealth(response: ServerResponse): void {
    const state = loaded === undefined ? 'loading' : loaded.engine.state();
    sendJson(response, state === 'ready' ? 200 : 503, { status: state });
  }

  return {
    http,
    ready(next) {
      loaded = next;
    },
    async stop() {
      http.close();
      const ends = [...running].map((entry) => entry.done);
      for (const entry of running) entry.abort.abort(new RefusalError(STOPPING));
      await Promise.all(ends);
      http.closeAllConnections();
    },
  };
}

function fail(response: ServerResponse, error: unknown): void {
  if (error instanceof RefusalError) return sendRefusal(response, error.refusal);
  // The client has left, and nobody reads the answer.
  if (response.destroyed) return;
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`error: A request failed: ${message}\n`);
  sendRefusal(response, {
    status: 500,
    code: 'engine.failed',
    message: `Try again, or choose another model: the engine failed: ${message}`,
  });
}

function discardRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  request.resume();
  const end = setTimeout(() => request.destroy(), DISCARD_MS);
  end.unref();
  request.on('close', () => clearTimeout(end));
}
