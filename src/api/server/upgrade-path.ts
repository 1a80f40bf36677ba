/** Upgrades to WebSocket, which bypass the framework: site and access are checked here by the same rules. */
import type { IncomingMessage } from 'node:http';
import { parseRequestHead } from '../../gateway/upstream/decide/request-head.ts';
import { ERROR_CODES } from '../../schema/words/error-codes.ts';
import type { AccessDecision, Caller } from '../../auth/decide/decide-access.ts';
import { writeError } from './error-handler.ts';
import { newRequestId, type Route, type UpgradeRequest } from './define-route.ts';
import type { BypassDeps } from './hot-path.ts';

export type UpgradePath = ReturnType<typeof createUpgradePath>;

type UpgradeRoute = Route & Required<Pick<Route, 'upgrade'>>;

const SWITCHED = 101;

export function createUpgradePath({ routes, site, authorize, report, onFault }: BypassDeps) {
  const known = new Map(routes.filter(isUpgradeRoute).map((route) => [route.path, route]));
  const routeOf = ({ url = '' }: IncomingMessage): UpgradeRoute | undefined => known.get(url.split('?', 1)[0] ?? '');

  return {
    /** `enter` takes the request. Node answers others as if they had asked for no other protocol. */
    serves: (req: IncomingMessage) =>
      req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket' && routeOf(req) !== undefined,
    enter(req: IncomingMessage, leftover: Buffer): void {
      const { socket } = req;
      const route = routeOf(req);
      socket.on('error', () => socket.destroy());
      if (route === undefined) return void socket.destroy();
      const head = parseRequestHead(req.rawHeaders);
      const requestId = head.requestId ?? newRequestId();
      const startedAt = performance.now();
      const refuse: UpgradeRequest['refuse'] = (code, message, param = null) => {
        report({ slot: undefined, route: route.path, status: ERROR_CODES[code].status, seconds: 0 });
        writeError(socket, code, message, { requestId, param });
      };
      const from = site.check(req, head, route);
      if (from.kind === 'refuse') return refuse(from.code, from.message, from.param);
      const checked = { url: req.url, rawHeaders: withProtocolKey(req.rawHeaders), socket };
      const decide = async (): Promise<AccessDecision> => authorize(route.access, checked);
      const seconds = (): number => (performance.now() - startedAt) / 1000;
      const requestOf = (caller: Caller | undefined): UpgradeRequest => ({
        req,
        caller,
        leftover,
        requestId,
        refuse,
        isAllowed: async () => {
          try {
            const decision = await decide();
            // A check that cannot be made now says nothing about the credentials.
            return decision.ok || ERROR_CODES[decision.code].status >= BUSY_STATUS;
          } catch (error) {
            onFault(error, requestId);
            return false;
          }
        },
        done: () => report({ slot: undefined, route: route.path, status: SWITCHED, seconds: seconds() }),
      });
      const proceed = (decision: AccessDecision): void => {
        if (socket.destroyed) return;
        if (decision.ok) route.upgrade(requestOf(decision.caller));
        else refuse(decision.code, decision.message);
      };
      decide()
        .then(proceed)
        .catch((error: unknown) => {
          onFault(error, requestId);
          refuse('server.internal', `The gateway failed: report this with the request id "${requestId}"`);
        });
    },
  };
}

/** `auth.busy`, and everything that is no fault of the client. */
const BUSY_STATUS = 429;

const isUpgradeRoute = (route: Route): route is UpgradeRoute => route.upgrade !== undefined;

const KEY_PREFIX = 'openai-insecure-api-key.';
const HEADER = 'sec-websocket-protocol';
/** The server's answer if the client offers it: never the key. */
export const PROTOCOL = 'realtime';

/**
 * Browsers cannot set `Authorization` for a WebSocket, so OpenAI's client sends the key as a subprotocol name. It
 * becomes a bearer token in `rawHeaders` (names and values in turn). Pure.
 */
export function withProtocolKey(rawHeaders: readonly string[]): readonly string[] {
  const keys: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== HEADER) continue;
    for (const name of (rawHeaders[index + 1] ?? '').split(',')) {
      const protocol = name.trim();
      if (protocol.startsWith(KEY_PREFIX)) keys.push('Authorization', `Bearer ${protocol.slice(KEY_PREFIX.length)}`);
    }
  }
  return keys.length === 0 ? rawHeaders : [...rawHeaders, ...keys];
}
