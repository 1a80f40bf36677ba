/**
 * One gateway with a slot of this machine, which has a preset, and one of another machine, both in front of the same upstream. Argument: its port. Sends its own
 * port, and answers each message with its CPU time in microseconds.
 */
import { allowEveryone } from '../src/auth/check-token.ts';
import { buildServer } from '../src/api/server/server.ts';
import { createSiteGuard } from '../src/api/server/site-guard.ts';
import { createV1Routes } from '../src/api/v1/v1-routes.ts';
import { createGateway } from '../src/gateway/create-gateway.ts';
import { createTraffic } from '../src/gateway/traffic/traffic.ts';
import { PROVIDERS } from '../src/providers/registry.ts';
import { createBoard } from '../src/reconciler/board.ts';
import { parseSettings } from '../src/schema/settings/settings.ts';
import { parseSlot } from '../src/schema/slot/slot-spec.ts';
import { createAccelerator } from '../src/turbo/fast-path/fast-path.ts';
import { readSitePolicy } from '../src/wiring/site-policy.ts';
import { boardView, slotName, workloadId } from '../test/gateway/support/board-fixture.ts';

const parsed = parseSettings({});
if (!parsed.ok) throw new Error(parsed.problems.join('; '));
const { settings } = parsed;
const port = Number(process.argv[2]);
const board = createBoard();
const now = (): number => performance.now();
const traffic = createTraffic({ board, now, settings });
const onFault = (fault: unknown): void => console.error(fault);
const gateway = createGateway({ board, providers: PROVIDERS, traffic, settings, now, report: () => undefined, onFault });

const targets = [{ workload: 'w', port }];
const view = boardView(1, [
  { name: 'primary', presets: { calm: { set: { temperature: 0.1 } } }, targets },
  { name: 'far', model: 'their/model', targets },
]);
const name = slotName('far');
const url = `http://127.0.0.1:${port}`;
const far = parseSlot(name, { provider: 'remote', model: { default: 'their/model' }, remote: { url, private: true } });
const local = view.slots.get(name);
if (!far.ok || far.spec.remote === undefined || local === undefined) throw new Error(JSON.stringify(far));
const link = { ...far.spec.remote, key: 'far', hop: '00000000-0000-4000-8000-000000000000' };
const remote = { ...local, spec: far.spec, targets: [{ workload: workloadId('w'), endpoint: { host: '127.0.0.1', port, link } }] };
board.publish({ ...view, slots: new Map([...view.slots, [name, remote]]) });

const api = buildServer({
  routes: createV1Routes({ board, gateway, startedAt: Date.now() }),
  settings,
  gateway,
  site: createSiteGuard(readSitePolicy(settings, false)),
  authorize: allowEveryone,
  accelerator: createAccelerator(settings),
});
const listening = await api.listen({ host: '127.0.0.1', port: 0 });
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on('disconnect', () => process.exit(0));
process.send?.(listening);
