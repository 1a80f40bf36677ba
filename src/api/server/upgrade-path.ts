/**
 * Requests to change the protocol of a connection to WebSocket. They do not come to the framework: site and access are checked here, by the same rules as for all
 * routes, and the route that takes the connection then decides about everything else.
 */
import type { IncomingMessage } from 'node:http';
import type { ReportRequest } from '../../gateway/exchange-deps.ts';
import { parseRequestHead } from '../../gateway/upstream/decide/request-head.ts';
import { ERROR_CODES, type ErrorCode } from '../../schema/words/error-codes.ts';
import type { Authorize } from '../../auth/check-token.ts';
import type { AccessDecision } from '../../auth/decide/decide-access.ts';
import { writeError, type OnFault } from './error-handler.ts';
import { newRequestId, type Route, type UpgradeRequest } from './route.ts';
import type { SiteGuard } from './site-guard.ts';

export type UpgradePath = ReturnType<typeof createUpgradePath>;

type UpgradeRoute = Route & Required<Pick<Route, 'upgrade'>>;

interface UpgradeDeps {
  readonly routes: readonly Route[];
  readonly site: SiteGuard;
  readonly authorize: Authorize;
  readonly report: ReportRequest;
  readonly onFault: OnFault;
}

const SWITCHED = 101;

export function createUpgradePath({ routes, site, authorize, report, onFault }: UpgradeDeps) {
  const known = new Map(routes.filter(isUpgradeRoute).map((route) => [route.path, route]));
  const routeOf = ({ url = '' }: IncomingMessage): UpgradeRoute | undefined => known.get(url.split('?', 1)[0] ?? '');

  return {
    /** Whether `enter` takes the connection of the request. Others stay with Node, which answers as if no other protocol had been asked for. */
    serves: (req: IncomingMessage) =>
      req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket' && routeOf(req) !== undefined,
    /** `leftover`: bytes that came after the head. */
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
        if (socket.writable) writeError(socket, code, message, { requestId, param });
      };
      const from = site.check(req, head, route);
      if (from.kind === 'refuse') return refuse(from.code, from.message, from.param);
      const checked = { url: req.url, rawHeaders: withProtocolKey(req.rawHeaders), socket };
      const decide = async (): Promise<AccessDecision> => authorize(route.access, checked);
      const seconds = (): number => (performance.now() - startedAt) / 1000;
      const request: UpgradeRequest = {
        req,
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
      };
      const proceed = (decision: AccessDecision): void => {
        if (socket.destroyed) return;
        if (decision.ok) route.upgrade(request);
        else refuse(decision.code, decision.message);
      };
      decide()
        .then(proceed)
        .catch((error: unknown) => fault(error, requestId, refuse));
    },
  };

  function fault(error: unknown, requestId: string, refuse: (code: ErrorCode, message: string) => void): void {
    onFault(error, requestId);
    refuse('server.internal', `Report this with the request id "${requestId}": the gateway failed`);
  }
}

/** `auth.busy`, and everything that is no fault of the client. */
const BUSY_STATUS = 429;

function isUpgradeRoute(route: Route): route is UpgradeRoute {
  return route.upgrade !== undefined;
}

/** Pages in a browser cannot set `Authorization` for a WebSocket, so OpenAI's client sends the key as the name of a subprotocol. Pure. */

const KEY_PREFIX = 'openai-insecure-api-key.';
const HEADER = 'sec-websocket-protocol';
/** What the server answers if the client offers it: never the key. */
export const PROTOCOL = 'realtime';

/** `rawHeaders` are names and values in turn. The key becomes a bearer token beside the ones that are there already: two different ones are refused. */
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
