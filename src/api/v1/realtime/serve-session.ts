/**
 * Connects a WebSocket with a session, and ends both: when the client leaves, says nothing for too long, does not answer pings or does not read, when its credentials are
 * no longer valid, after an hour, or when the service stops.
 */
import type { WebSocket } from 'ws';
import { Session, type SessionDeps } from './session.ts';

export interface ServedSession {
  /** Lets the session transcribe what it has, then ends it. */
  finish(): void;
}

export interface ServeOptions {
  readonly model: string | undefined;
  readonly idleMs: number;
  /** Whether the client may still do what it did when it connected. */
  readonly isAllowed: () => Promise<boolean>;
  readonly onEnd: () => void;
}

/** OpenAI's, also in its code. */
export const SESSION_MS = 3_600_000;
const EXPIRED = 'session_expired';
/** How often these limits are checked: at most, and at least. */
const CHECK_MS = 10_000;
const LEAST_CHECK_MS = 1000;
/** Events that wait for a client that does not read. */
const UNREAD_BYTES = 4 * 1024 * 1024;
/** RFC 6455, 7.4.1. */
const [NORMAL, GOING_AWAY, POLICY] = [1000, 1001, 1008];

export function serveSession(ws: WebSocket, deps: Omit<SessionDeps, 'send'>, options: ServeOptions): ServedSession {
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
    if (now() - beganAt >= SESSION_MS) end(EXPIRED, 'Connect again: a session lasts an hour at most', GOING_AWAY);
    else if (now() - eventAt >= options.idleMs)
      end(
        'request.timeout',
        `Connect again when there is sound: nothing came for ${options.idleMs / 1000} s ("SVC_REALTIME_IDLE")`,
        NORMAL,
      );
    else if (!(await options.isAllowed()))
      end('auth.invalid', 'Connect again with other credentials: these are no longer accepted', POLICY);
  };
  const checks = setInterval(() => void check(), Math.max(LEAST_CHECK_MS, Math.min(CHECK_MS, options.idleMs)));

  ws.on('pong', () => (isAlive = true));
  ws.on('message', (data, isBinary) => {
    eventAt = now();
    isAlive = true;
    if (!isBinary && Buffer.isBuffer(data)) session.receive(data.toString('utf8'));
    else
      session.sendError({ type: 'invalid_request_error', code: 'request.invalid', message: 'Send events as text, with sound in Base64' });
  });
  // Such as a message that is too long: the connection closes then, with the status of the reason.
  ws.on('error', () => {});
  ws.on('close', () => {
    clearInterval(checks);
    session.dispose();
    options.onEnd();
  });
  return {
    finish: () => session.finish(() => ws.close(GOING_AWAY, 'The service is stopping')),
  };
}
