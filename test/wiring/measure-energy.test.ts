/** From files of the kernel to GET /api/usage and svcctl, as the service puts them together; the clock is the test's. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createUsageRoute } from '../../src/api/manage/usage-routes.ts';
import { createEnergyReader } from '../../src/host/hardware/energy-reader.ts';
import { createBoard, type Board } from '../../src/reconciler/board.ts';
import type { UsageRecorder } from '../../src/usage/usage-recorder.ts';
import { measureEnergy } from '../../src/wiring/open-usage.ts';
import { createInMemoryUsage } from '../api/manage/in-memory-usage.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { boardView, slotName } from '../gateway/support/board-fixture.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';
import { eventually } from '../support/eventually.ts';

const WALL = Date.UTC(2027, 0, 2, 12, 30);
let root: string;
let now: number;
let timer: (() => void) | undefined;
let inFlight: number;
let reads: number;
let hasAskedNvidia: boolean;
let board: Board;
let usage: UsageRecorder;
let service: GatewayFixture;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-energy-'));
  now = 50_000;
  timer = undefined;
  inFlight = 0;
  reads = 0;
  hasAskedNvidia = false;
  board = createBoard();
  const read = createEnergyReader({ env: {}, root, now: () => now });
  usage = measureEnergy(
    createInMemoryUsage(() => WALL),
    {
      board,
      clock: { now: () => now, wallNow: () => WALL, at: (_at, callback) => ((timer = callback), () => void (timer = undefined)) },
      traffic: { ofSlot: () => ({ inFlight, parked: 0 }) },
      async read(wanted) {
        reads += 1;
        hasAskedNvidia = wanted.nvidia;
        return await read({ nvidia: false });
      },
      factsOf: () => ({ model: 'fox' }),
    },
  );
  service = await startGateway({ routes: [createUsageRoute({ usage, tokens: { list: () => [] }, wallNow: () => WALL })] });
});
afterEach(async () => {
  await service.close();
  await usage.close();
  await rm(root, { recursive: true, force: true });
});

async function count(joules: number): Promise<void> {
  const zone = path.join(root, 'sys/class/powercap/intel-rapl:0');
  await mkdir(zone, { recursive: true });
  const files = { name: 'package-0', max_energy_range_uj: '65532610987', energy_uj: String(joules * 1e6) };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(zone, name), `${text}\n`);
}
const ask = async (): Promise<{ readonly energy_sources: unknown; readonly usage: readonly unknown[] }> =>
  JSON.parse(await (await fetch(`${service.url}/api/usage?by=slot`)).text());

test('the energy of a request is that of the machine while it ran', async () => {
  expect(await ask()).toMatchObject({ energy_sources: [], usage: [] });
  await count(1000);
  board.publish(boardView(1, [{ name: 'primary', state: 'ready' }]));
  expect(reads).toBe(0);
  inFlight = 1;
  board.publish(boardView(2, [{ name: 'primary', state: 'serving' }]));
  await eventually('it was read', () => timer !== undefined);
  now += 3000;
  await count(1450);
  const request = { slot: slotName('primary'), caller: 'local', route: '/v1/x', status: 200, seconds: 3, tokens: { input: 1, output: 2 } };
  inFlight = 0;
  usage.note(request);
  const due = timer;
  timer = undefined;
  due?.();
  await eventually('it was read again', () => reads === 2 && timer !== undefined);
  usage.note({ ...request, slot: undefined, caller: 'local', tokens: undefined });
  expect(await ask()).toMatchObject({
    energy_sources: [{ source: 'RAPL package-0', problem: null }],
    usage: [
      { slot: '', requests: 1, energy_wh: null },
      { slot: 'primary', requests: 1, busy_seconds: 3, output_tokens: 2, energy_wh: 0.125 },
    ],
  });
  const env = { SVCCTL_SERVER: service.url };
  const since = ['--since', '2027-01-01'];
  expect((await svcctl(['usage', '--by', 'slot', ...since, '-o', 'wide'], { env })).out).toMatch(/ ENERGY\n.*\n?.*~0\.13Wh\n/);
  expect((await svcctl(['usage', '--by', 'slot', ...since], { env })).out).not.toContain('ENERGY');
  expect((await svcctl(['usage', '--by', 'slot', ...since, '-o', 'csv'], { env })).out).toMatch(
    /,energy_wh,loads,evictions\r\n.*,,0,0\r\n.*,0\.125,0,0\r\n$/,
  );
});

test('sensors that cannot be read are named with the reason', async () => {
  await count(Number.NaN);
  board.publish(boardView(1, [{ name: 'primary', state: 'serving' }]));
  await eventually('it is told', async () => JSON.stringify((await ask()).energy_sources).includes('not a number'));
  expect((await ask()).energy_sources).toEqual([{ source: 'RAPL package-0', problem: 'not a number' }]);
});

test.each([
  ['cuda', true],
  ['cpu', false],
  ['vulkan', false],
] as const)('nvidia-smi may run for a slot on %s: %j', async (backend, expected) => {
  await count(5);
  const view = boardView(1, [{ name: 'primary', state: 'serving' }]);
  board.publish({
    ...view,
    slots: new Map([...view.slots].map(([name, slot]) => [name, { ...slot, status: { ...slot.status, backend } }])),
  });
  await eventually('it was read', () => timer !== undefined);
  expect(hasAskedNvidia).toBe(expected);
});

test('nothing is read after the end', async () => {
  await usage.close();
  board.publish(boardView(1, [{ name: 'primary', state: 'serving' }]));
  usage.note({ slot: slotName('primary'), caller: 'local', route: '/v1/x', status: 200, seconds: 3 });
  expect([reads, timer]).toEqual([0, undefined]);
});
