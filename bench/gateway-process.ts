/**
 * The gateway stripped of everything else, in its own process, with a board of open slots: `primary`, `slot-1` and so on, and `streams` if it has an upstream. Arguments: the upstream's port, the number of
 * slots (default 1), the port of the upstream of `streams`. Prints its port.
 */
import { allowEveryone } from '../src/auth/check-token.ts';
import { createMetrics } from '../src/api/metrics/metrics.ts';
import { buildServer } from '../src/api/server/server.ts';
import { createSiteGuard } from '../src/api/server/site-guard.ts';
import { createV1Routes } from '../src/api/v1/v1-routes.ts';
import { createGateway } from '../src/gateway/create-gateway.ts';
import { createTraffic } from '../src/gateway/traffic/traffic.ts';
import { PROVIDERS } from '../src/providers/registry.ts';
import { createBoard } from '../src/reconciler/board.ts';
import { parseSettings } from '../src/schema/settings/settings.ts';
import { readSitePolicy } from '../src/wiring/site-policy.ts';
import { createAccelerator } from '../src/turbo/fast-path/fast-path.ts';
import { publish } from '../test/gateway/support/board-fixture.ts';

const parsed = parseSettings({});
if (!parsed.ok) throw new Error(parsed.problems.join('; '));
const { settings } = parsed;
const board = createBoard();
const now = (): number => Date.now();
const traffic = createTraffic({ board, now, settings });
const metrics = createMetrics({ version: 'bench', runtime: 'none', board, leads: () => true, traffic: traffic.ofSlot });
const gateway = createGateway({
  board,
  providers: PROVIDERS,
  traffic,
  settings,
  now,
  report: metrics.requestFinished,
  onFault: (fault) => console.error(fault),
});
const routes = createV1Routes({ board, gateway, startedAt: now() });
const api = buildServer({
  routes,
  settings,
  gateway,
  site: createSiteGuard(readSitePolicy(settings, false)),
  authorize: allowEveryone,
  report: metrics.requestFinished,
  accelerator: createAccelerator(settings),
});
const upstreamPort = Number(process.argv[2]);
const slots = Array.from({ length: Number(process.argv[3] ?? 1) }, (_, index) => ({
  name: index === 0 ? 'primary' : `slot-${index}`,
  targets: [{ workload: `w${index}`, port: upstreamPort }],
}));
const streams =
  process.argv[4] === undefined ? [] : [{ name: 'streams', targets: [{ workload: 'streams', port: Number(process.argv[4]) }] }];
publish(board, ...slots, ...streams);
process.stdout.write(`${await api.listen({ host: '127.0.0.1', port: 0 })}\n`);
process.on('disconnect', () => process.exit(0));
