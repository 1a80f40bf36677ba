/**
 * The gateway several times in one process, each on its own port: without traces, with 1 % of them, and with all. Arguments: the upstream's port; the collector is that of `OTEL_EXPORTER_OTLP_ENDPOINT`. Sends the ports, and answers each message with its CPU time in microseconds.
 */
import { reportTo } from '../src/api/manage/request-record.ts';
import { createMetrics } from '../src/api/metrics/metrics.ts';
import { allowEveryone } from '../src/auth/check-token.ts';
import { buildServer } from '../src/api/server/server.ts';
import { createSiteGuard } from '../src/api/server/site-guard.ts';
import { createV1Routes } from '../src/api/v1/v1-routes.ts';
import { createGateway } from '../src/gateway/create-gateway.ts';
import { createTracer } from '../src/gateway/trace/request-trace.ts';
import { createTraffic } from '../src/gateway/traffic/traffic.ts';
import { PROVIDERS } from '../src/providers/registry.ts';
import { createBoard } from '../src/reconciler/board.ts';
import { parseSettings } from '../src/schema/settings/settings.ts';
import { readSitePolicy } from '../src/wiring/site-policy.ts';
import { startTraces, type Traces } from '../src/wiring/start-traces.ts';
import { createAccelerator } from '../src/turbo/fast-path/fast-path.ts';
import { publish } from '../test/gateway/support/board-fixture.ts';

const parsed = parseSettings({});
if (!parsed.ok) throw new Error(parsed.problems.join('; '));
const { settings } = parsed;
const board = createBoard();
const now = (): number => Date.now();
const traffic = createTraffic({ board, now, settings });
const onFault = (fault: unknown): void => console.error(fault);
const accelerator = createAccelerator(settings);
const site = createSiteGuard(readSitePolicy(settings, false));
const print = (_fields: object, line: string): void => void process.stderr.write(`  ${line}\n`);
const log = { debug: print, info: () => undefined, warn: print, error: print };
const sampled = async (ratio: string): Promise<Traces | undefined> => {
  const env = { ...process.env, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio };
  return await startTraces({ env, version: 'bench', log, leadership: { leads: () => true } }, board);
};

publish(board, { name: 'primary', targets: [{ workload: 'w', port: Number(process.argv[2]) }] });
const ports: number[] = [];
for (const traces of [undefined, await sampled('0.01'), await sampled('1')]) {
  const startTrace = createTracer(traces?.sampling);
  const metrics = createMetrics({ version: 'bench', runtime: 'none', board, leads: () => true, traffic: traffic.ofSlot });
  const report = reportTo(metrics.requestFinished, ...(traces === undefined ? [] : [traces.note]));
  const gateway = createGateway({ board, providers: PROVIDERS, traffic, settings, now, report, startTrace, onFault });
  const routes = createV1Routes({ board, gateway, startedAt: now() });
  const api = buildServer({ routes, settings, gateway, site, authorize: allowEveryone, accelerator, startTrace });
  ports.push(await api.listen({ host: '127.0.0.1', port: 0 }));
}
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on('disconnect', () => process.exit(0));
process.send?.(ports);
