/** The real server with the whole table of routes, in which each handler only says that it was reached: what the checks before the handlers decide can be seen from outside. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { Agent, request, type RequestOptions } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Route } from '../../src/api/server/define-route.ts';
import type { Authorize } from '../../src/auth/check-token.ts';
import { pageRoutes } from '../api/manage/page-routes.ts';
import { startWorld } from '../api/manage/world.ts';
import { ACCELERATED } from '../support/accelerator.ts';
import { buildServer } from '../../src/api/server/server.ts';
import { createBufferBudget } from '../../src/gateway/traffic/traffic.ts';
import { createSecondDoor } from '../../src/api/server/local-socket.ts';
import { createSiteGuard } from '../../src/api/server/site-guard.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { readSitePolicy } from '../../src/wiring/site-policy.ts';

export interface ReachedRoutes {
  /** As they are written in the table: `GET /api/slots/:name`. */
  readonly names: readonly string[];
  /** The routes that pages of other sites may use. */
  readonly anySite: readonly string[];
  /** Returns the route of the table with this name. */
  route(name: string): Route;
  /** From now on, requests go through a second port, and the first one serves models only. */
  useManagementPort(): Promise<void>;
  useModelPort(): void;
  /** Returns `reached`, or the code of the refusal; for `HEAD`, which has no body, `reached` or the status. `headers`: names and values in turn, so that a name can be sent twice. */
  send(route: string, headers: readonly string[], method?: 'HEAD'): Promise<string>;
  close(): Promise<void>;
}

export async function startReachedRoutes(authorize: Authorize): Promise<ReachedRoutes> {
  const page = mkdtempSync(join(tmpdir(), 'svc-page-'));
  mkdirSync(join(page, 'assets'));
  writeFileSync(join(page, 'index.html'), '<!doctype html>');
  writeFileSync(join(page, 'assets/page-1.js'), '');
  const world = await startWorld({ v1: true, env: { SVC_MCP: 'on' } });
  const table: readonly Route[] = [...world.routes, ...world.agents.routes, ...pageRoutes(page)];
  const parsed = parseSettings({});
  if (!parsed.ok) throw new Error(parsed.problems.join());
  const door = createSecondDoor();
  let managementPort = 0;
  const api = buildServer({
    routes: table.map(onlyReached),
    settings: parsed.settings,
    gateway: { budget: createBufferBudget(2 ** 20), close: async () => undefined },
    site: createSiteGuard(readSitePolicy(parsed.settings, false), (socket) => managementPort !== 0 && !door.hasLedIn(socket)),
    authorize,
    ...ACCELERATED,
  });
  const modelPort = await api.listen({ host: '127.0.0.1', port: 0 });
  let port = modelPort;
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const byName = new Map(table.map((route) => [`${route.method} ${route.path}`, route]));

  function routeOf(name: string): Route {
    const route = byName.get(name);
    if (route === undefined) throw new Error(`There is no route "${name}"`);
    return route;
  }

  return {
    names: [...byName.keys()],
    anySite: [...byName].filter(([, route]) => route.anySite === true).map(([name]) => name),
    route: routeOf,
    async useManagementPort() {
      if (managementPort === 0)
        await door.open(api.server, async (listener) => {
          await once(listener.listen(0, '127.0.0.1'), 'listening');
          const address = listener.address();
          managementPort = typeof address === 'object' && address !== null ? address.port : 0;
        });
      port = managementPort;
    },
    useModelPort: () => void (port = modelPort),
    async send(name, headers, method) {
      const route = routeOf(name);
      const type = route.multipart === true ? 'multipart/form-data; boundary=x' : 'application/json';
      const own = headers.some((each) => each.toLowerCase() === 'host') ? [] : ['Host', `127.0.0.1:${port}`];
      const body = route.method === 'GET' ? [] : ['Content-Type', type, 'Content-Length', '0'];
      const options = { agent, host: '127.0.0.1', port, path: pathOf(route), method: method ?? route.method };
      return await exchange({ ...options, headers: [...own, ...body, ...headers] });
    },
    async close() {
      agent.destroy();
      await Promise.all([door.close(), api.close(0)]);
      await world.close();
      rmSync(page, { recursive: true });
    },
  };
}

/** The same route with its class, its method and its checks, and nothing behind them. */
function onlyReached(route: Route): Route {
  const { raw, ...rest } = route;
  return {
    ...rest,
    handler: (_request, reply) => reply.code(200).send('reached'),
    ...(raw === undefined ? {} : { raw: answerReached }),
  };
}

const answerReached: Required<Route>['raw'] = ({ res }) => {
  res.writeHead(200, { 'content-length': 'reached'.length });
  res.end('reached');
};

const pathOf = ({ path }: Route): string =>
  path.replace(':name', 'primary').replace(':id', '1a2b3c4d').replace(':file', 'a.png').replace('*', 'a');

async function exchange(options: RequestOptions): Promise<string> {
  return await new Promise((resolve, reject) => {
    const sent = request(options, (res) => {
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (chunk: string) => (text += chunk));
      res.on('end', () => resolve(text === '' ? (res.statusCode === 200 ? 'reached' : String(res.statusCode)) : codeIn(text)));
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** Errors of Ollama's routes are texts alone. */
const OLLAMA_ERRORS: readonly (readonly [begins: string, code: string])[] = [
  ['The request has no credential', 'auth.required'],
  ['The token is unknown', 'auth.invalid'],
  ['The request has several tokens', 'auth.invalid'],
  ['The token has the scope', 'auth.scope'],
  ['Pages of', 'request.cross_site'],
  ['The page that sent', 'request.cross_site'],
  ['The host name', 'request.cross_site'],
];

function codeIn(text: string): string {
  if (text === 'reached') return text;
  const { error }: { error?: string | { code?: string } } = JSON.parse(text);
  if (typeof error === 'string') return OLLAMA_ERRORS.find(([begins]) => error.startsWith(begins))?.[1] ?? text;
  return error?.code ?? text;
}
