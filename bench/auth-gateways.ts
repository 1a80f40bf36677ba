/**
 * The gateway several times in one process, each with its own port: without authentication, with each file of tokens, and with the first of these files once more while usage is recorded. All send to one
 * upstream.
 */
import { dirname, join } from 'node:path';
import { allowEveryone, createTokenCheck, type Authorize } from '../src/auth/check-token.ts';
import type { Accelerator } from '../src/api/server/http-server.ts';
import { buildServer } from '../src/api/server/server.ts';
import { createSiteGuard } from '../src/api/server/site-guard.ts';
import { createV1Routes } from '../src/api/v1/v1-routes.ts';
import { createTokenStore } from '../src/auth/token-store.ts';
import { createGateway } from '../src/gateway/create-gateway.ts';
import { createTraffic } from '../src/gateway/traffic/traffic.ts';
import { PROVIDERS } from '../src/providers/registry.ts';
import { createBoard } from '../src/reconciler/board.ts';
import { parseSettings } from '../src/schema/settings/settings.ts';
import { readSitePolicy } from '../src/wiring/site-policy.ts';
import { createAccelerator } from '../src/turbo/fast-path/fast-path.ts';
import { createUsageRecorder, openUsageFile } from '../src/usage/usage-recorder.ts';
import { publish } from '../test/gateway/support/board-fixture.ts';

interface Gateways {
  readonly ports: readonly number[];
  /** How many requests have ended. */
  finished(): number;
}

/** `files`: in a directory where usage may be recorded. `accelerate`: replaces what reads requests. */
export async function startGateways(
  upstreamPort: number,
  files: readonly string[],
  accelerate: (own: Accelerator) => Accelerator = (own) => own,
): Promise<Gateways> {
  const parsed = parseSettings({});
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const { settings } = parsed;
  const board = createBoard();
  const now = (): number => Date.now();
  const traffic = createTraffic({ board, now, settings });
  const onFault = (fault: unknown): void => console.error(fault);
  let finished = 0;
  const report = (): void => void (finished += 1);
  const gatewayWith = (more: typeof usage.note) => {
    const parts = { board, providers: PROVIDERS, traffic, settings, now, onFault };
    const gateway = createGateway({ ...parts, report: (request) => (report(), more(request)) });
    return { gateway, routes: createV1Routes({ board, gateway, startedAt: now() }) };
  };
  const usage = createUsageRecorder({
    database: openUsageFile(join(dirname(files[0] ?? ''), `usage-${process.pid}.sqlite`)),
    wallNow: now,
    now,
    factsOf: (name) => ({ model: board.current().slots.get(name)?.spec.model.default }),
    log: { warn: (_fields, message) => console.error(message) },
  });
  const site = createSiteGuard(readSitePolicy(settings, false));
  const authorizeWith = (path: string): Authorize => {
    const store = createTokenStore({ path, log: { warn: (_fields, message) => console.error(message) } });
    const uses = new Map<string, number>();
    const withAuthentication = { ...settings, SVC_AUTH_ENABLED: true, SVC_PROXY_SECRET: 'secret-of-the-proxy' };
    return createTokenCheck(withAuthentication, { store, onUse: (id) => void uses.set(id, now()) });
  };
  publish(board, { name: 'primary', targets: [{ workload: 'w', port: upstreamPort }] });
  const ports: number[] = [];
  const plain = gatewayWith(() => undefined);
  const kinds = [allowEveryone, ...files.map(authorizeWith)].map((authorize) => ({ ...plain, authorize }));
  const recorded = files.slice(0, 1).map((file) => ({ ...gatewayWith(usage.note), authorize: authorizeWith(file) }));
  for (const kind of [...kinds, ...recorded]) {
    const api = buildServer({ ...kind, settings, site, accelerator: accelerate(createAccelerator(settings)) });
    ports.push(await api.listen({ host: '127.0.0.1', port: 0 }));
  }
  return { ports, finished: () => finished };
}
