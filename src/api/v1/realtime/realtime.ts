/**
 * `GET /v1/realtime`: WebSocket sessions that transcribe sound while it arrives, as OpenAI's clients request with
 * `?intent=transcription`. `api/server/upgrade-path.ts` has checked site and credentials.
 */
import { WebSocketServer, type WebSocket } from 'ws';
import { z } from 'zod';
import type { BufferBudget } from '../../../gateway/traffic/traffic.ts';
import { route } from '../../../gateway/route/decide/route.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { Board } from '../../../reconciler/board.ts';
import type { Settings } from '../../../schema/settings/settings.ts';
import { empty, ApiError } from '../../server/answer.ts';
import { sleep } from '../../../platform/clock.ts';
import { defaultBodyLimit, type DocumentedRoute, type UpgradeRequest } from '../../server/define-route.ts';
import { PROTOCOL } from '../../server/upgrade-path.ts';
import { writeError } from '../../server/error-handler.ts';
import { REALTIME_PATH, Session, type SessionDeps } from './session.ts';

interface RealtimeDeps {
  readonly gateway: Pick<Gateway, 'handle'> & { readonly budget: Pick<BufferBudget, 'reserve' | 'release'> };
  readonly board: Pick<Board, 'current'>;
  readonly settings: Pick<Settings, 'SVC_AUDIO_LIMIT' | 'SVC_REALTIME_LIMIT' | 'SVC_REALTIME_IDLE'>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
}

/** A minute of sound in Base64. Clients send parts of a tenth of a second. */
const MESSAGE_BYTES = 4 * 1024 * 1024;
const CLOSE_CHECK_MS = 20;
const INTENT = 'transcription';

const Query = z.object({
  intent: z.literal(INTENT).optional().describe('May be left out'),
  model: z.string().optional().describe('A model id, an alias or the name of a slot that transcribes; default: the slot `stt`'),
});

export function createRealtime({ gateway, board, settings, now, wallNow }: RealtimeDeps) {
  const limit = settings.SVC_REALTIME_LIMIT;
  const sessions = new Set<ServedSession>();
  let closing = false;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });

  // Otherwise the package answers in its own form.
  server.on('wsClientError', (error, socket) => writeError(socket, 'request.invalid', `Invalid WebSocket handshake: ${error.message}`));

  function admit(url = ''): ApiError | { readonly model: string | undefined } {
    const query = Query.safeParse(Object.fromEntries(new URLSearchParams(url.split('?', 2)[1])));
    if (!query.success) {
      const message = `The "intent" is not supported, because sessions transcribe: leave it out, or set it to "${INTENT}"`;
      return new ApiError('request.invalid', message, { param: 'intent' });
    }
    const { model } = query.data;
    const decision = route('transcription', REALTIME_PATH, model, board.current());
    if (decision.kind === 'refuse') return new ApiError(decision.code, decision.message, { param: 'model' });
    if (!closing && sessions.size < limit) return { model };
    const why = closing ? 'The service is stopping' : `${limit} realtime sessions are open ("SVC_REALTIME_LIMIT")`;
    return new ApiError('server.overloaded', `${why}: connect again later`);
  }

  function open({ req, leftover, requestId, caller, refuse, isAllowed, done }: UpgradeRequest): void {
    const admitted = admit(req.url);
    if (admitted instanceof ApiError) return refuse(admitted.code, admitted.message, admitted.param);
    const { socket } = req;
    server.handleUpgrade(req, socket, leftover, (ws) => {
      const expiresAt = Math.floor((wallNow() + SESSION_MS) / 1000);
      const deps = { gateway, board, budget: gateway.budget, settings, now, requestId, caller, socket, expiresAt };
      const session = serveSession(ws, deps, {
        model: admitted.model,
        idleMs: settings.SVC_REALTIME_IDLE,
        isAllowed,
        onEnd() {
          sessions.delete(session);
          done();
        },
      });
      sessions.add(session);
    });
  }

  const own: DocumentedRoute = {
    method: 'GET',
    path: REALTIME_PATH,
    access: 'v1',
    cors: true,
    bodyLimit: defaultBodyLimit('v1'),
    summary: 'Transcribes sound while it arrives, over a WebSocket with the events of OpenAI’s transcription sessions',
    tag: 'inference',
    input: z.object({ query: Query }),
    answers: { 101: empty('The connection is a WebSocket now') },
    errors: ['request.invalid', 'model.not_found', 'model.unsupported', 'server.overloaded'],
    upgrade: open,
    handler({ url }) {
      const admitted = admit(url);
      if (admitted instanceof ApiError) throw admitted;
      throw new ApiError('request.invalid', 'This route needs a WebSocket: send "Upgrade: websocket"', { param: 'Upgrade' });
    },
  };

  return {
    route: own,
    /** Lets sessions transcribe their sound and end. Resolves once all have, or after `graceMs`. Refuses new ones. */
    async close(graceMs: number): Promise<void> {
      closing = true;
      const until = now() + graceMs;
      for (const session of sessions) session.finish();
      while (sessions.size > 0 && now() < until) await sleep(CLOSE_CHECK_MS);
    },
  };
}

type ServedSession = ReturnType<typeof serveSession>;

interface ServeOptions {
  readonly model: string | undefined;
  readonly idleMs: number;
  readonly isAllowed: () => Promise<boolean>;
  readonly onEnd: () => void;
}

/** OpenAI's, also in its code. */
const SESSION_MS = 3_600_000;
const EXPIRED = 'session_expired';
/** Bounds of the interval between checks of these limits. */
const CHECK_MS = 10_000;
const LEAST_CHECK_MS = 1000;
/** Events that wait for a client that does not read. */
const UNREAD_BYTES = 4 * 1024 * 1024;
/** RFC 6455, 7.4.1. */
const [NORMAL, GOING_AWAY, POLICY] = [1000, 1001, 1008];

/**
 * Connects a WebSocket with a session, and ends both: when the client disconnects, is silent for too long, does not
 * answer pings or does not read, when its credentials are no longer valid, after an hour, or when the service stops.
 */
function serveSession(ws: WebSocket, deps: Omit<SessionDeps, 'send'>, options: ServeOptions) {
  const { now } = deps;
  const beganAt = now();
  let eventAt = beganAt;
  let isAlive = true;
  const send = (event: object): void => {
    if (ws.readyState !== ws.OPEN) return;
    if (ws.bufferedAmount > UNREAD_BYTES) ws.terminate();
    else ws.send(JSON.stringify(event));
  };
  const session = new Session({ ...deps, send }, options.model);
  const end = (code: string, message: string, status: number): void => {
    session.sendError({ type: 'invalid_request_error', code, message });
    ws.close(status, message.slice(0, 100));
  };
  const check = async (): Promise<void> => {
    if (!isAlive) return ws.terminate();
    isAlive = false;
    ws.ping();
    if (now() - beganAt >= SESSION_MS) end(EXPIRED, 'A session lasts an hour at most: connect again', GOING_AWAY);
    else if (now() - eventAt >= options.idleMs)
      end(
        'request.timeout',
        `Nothing came for ${options.idleMs / 1000} s ("SVC_REALTIME_IDLE"): connect again when there is sound`,
        NORMAL,
      );
    else if (!(await options.isAllowed())) end('auth.invalid', 'The credentials are no longer accepted: connect again with others', POLICY);
  };
  const checks = setInterval(() => void check(), Math.max(LEAST_CHECK_MS, Math.min(CHECK_MS, options.idleMs)));

  ws.on('pong', () => (isAlive = true));
  ws.on('message', (data, isBinary) => {
    eventAt = now();
    isAlive = true;
    if (!isBinary && Buffer.isBuffer(data)) session.receive(data.toString('utf8'));
    else
      session.sendError({
        type: 'invalid_request_error',
        code: 'request.invalid',
        message: 'Binary messages are not supported: send events as text, with sound in Base64',
      });
  });
  // Such as a message that is too long: the connection closes then, with the status of the reason.
  ws.on('error', () => {});
  ws.on('close', () => {
    clearInterval(checks);
    session.dispose();
    options.onEnd();
  });
  return { finish: (): void => session.finish(() => ws.close(GOING_AWAY, 'The service is stopping')) };
}
