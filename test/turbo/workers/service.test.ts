/**
 * The real service with four processes that forward. `SVC_TEST_SWAPS` and `SVC_TEST_KILLS`: how many swaps of the model and how many kills of a worker under load (100 and 50 by
 * `npm run test:long -- workers`).
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { condition, isAnswering, startService, type Service } from '../../support/service.ts';
import { startLoad } from './support/steady-load.ts';
import { metricOfWorkers, totalOf, workersOf } from './support/worker-processes.ts';

const SWAPS = Number(process.env['SVC_TEST_SWAPS'] ?? 2);
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? 3);
const PROCESSES = 4;
const CONNECTIONS = 16;
const START_MS = 120_000;
/** After many kills, the last worker is started again after five seconds. */
const ALL_WITHIN_MS = 30_000;
const LONG_MS = 60_000 + 10_000 * (SWAPS + KILLS);
let service: Service;

const slotText = (model: string): string => `provider = "gguf"\n[model]\ndefault = "${model}"\n`;

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { SVC_WORKERS: String(PROCESSES) } });
  await service.save('primary', slotText('demo-owl'));
  await service.until('primary', 'ready', isAnswering);
}, START_MS);
afterAll(async () => await service.dispose(), START_MS);

describe('A service with workers', () => {
  test('answers requests from several processes, and counts them together', async () => {
    const before = await totalOf(service.url, 'svc_requests_total', 'route="/v1/chat/completions"');
    const load = startLoad({ url: service.url, connections: CONNECTIONS });
    await eventually('100 answers', async () => load.answered() >= 100);
    await load.stop();
    expect(load.failures).toEqual([]);
    const byWorker = await metricOfWorkers(service.url, 'svc_worker_requests_total');
    expect([...byWorker.keys()]).toEqual(['1', '2', '3']);
    expect([...byWorker.values()].filter((count) => count > 0).length).toBeGreaterThan(1);
    expect(await totalOf(service.url, 'svc_requests_total', 'route="/v1/chat/completions"')).toBe(before + load.answered());
    await service.until('primary', 'idle', (slot) => slot?.status.state === 'idle');
  });

  test('shows what is in flight on all processes together', async () => {
    const load = startLoad({ url: service.url, connections: CONNECTIONS });
    await service.until('primary', 'serving', (slot) => slot?.status.state === 'serving');
    await eventually('several in flight', async () => (await totalOf(service.url, 'svc_inflight', 'slot="primary"')) > 1);
    await load.stop();
    expect(load.failures).toEqual([]);
    await eventually('none in flight', async () => (await totalOf(service.url, 'svc_inflight', 'slot="primary"')) === 0);
  });

  test(
    'loses no request over swaps of the model',
    async () => {
      const load = startLoad({ url: service.url, connections: CONNECTIONS });
      for (let swap = 0; swap < SWAPS; swap += 1) {
        const model = swap % 2 === 0 ? 'demo-fox' : 'demo-owl';
        await service.save('primary', slotText(model));
        await service.until(
          'primary',
          `serving ${model}`,
          (slot) => slot?.status.model === model && condition(slot, 'Progressing')?.status !== 'True',
        );
        const reached = load.answered() + CONNECTIONS;
        await eventually('answers after the swap', async () => load.answered() > reached);
      }
      await load.stop();
      expect(load.failures).toEqual([]);
    },
    LONG_MS,
  );

  test(
    'loses only what is in flight on a worker that is killed, and starts it again',
    async () => {
      const load = startLoad({ url: service.url, connections: CONNECTIONS });
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const before = await eventuallySome();
        const victim = before[kill % before.length] ?? 0;
        const failed = load.failures.length;
        process.kill(victim, 'SIGKILL');
        await eventually('the worker has ended', async () => !(await workersOf(service.pid())).includes(victim));
        const reached = load.answered() + 2 * CONNECTIONS;
        await eventually('answers after the kill', async () => load.answered() > reached);
        // One for each connection of the worker at most.
        expect(load.failures.length - failed).toBeLessThanOrEqual(CONNECTIONS);
      }
      await load.stop();
      expect(load.lost).toEqual([]);
      await eventuallyAll();
      expect(service.output()).toContain('has ended (SIGKILL)');
      await eventually('none in flight', async () => (await totalOf(service.url, 'svc_inflight', 'slot="primary"')) === 0);
    },
    LONG_MS,
  );

  // Takes half a minute, as long as a worker may be silent.
  test(
    'ends a worker that hangs, and goes on with a swap that waits for it',
    async () => {
      const [victim = 0] = await eventuallyAll();
      const { model } = (await service.slot('primary'))?.status ?? {};
      const other = model === 'demo-owl' ? 'demo-fox' : 'demo-owl';
      process.kill(victim, 'SIGSTOP');
      await service.save('primary', slotText(other));
      await eventually('the worker has ended', () => !isAlive(victim), ALL_WITHIN_MS);
      await service.until(
        'primary',
        `serving ${other}`,
        (slot) => slot?.status.model === other && condition(slot, 'UpToDate')?.status === 'True',
      );
      await eventuallyAll();
      expect(service.output()).toContain('it has not answered for 15 s');
    },
    LONG_MS,
  );

  test(
    'starts a slot for a request that waits in a worker',
    async () => {
      await service.save('asleep', `load = "on-demand"\n${slotText('demo-owl')}[lifecycle]\nidle_timeout = "1s"\n`);
      await service.until('asleep', 'at rest', (slot) => condition(slot, 'Ready')?.status === 'False');
      const load = startLoad({ url: service.url, connections: CONNECTIONS, body: { model: 'asleep' } });
      await eventually('answers of the slot', async () => load.answered() > CONNECTIONS);
      await load.stop();
      expect(load.failures).toEqual([]);
      await service.until('asleep', 'offline again', (slot) => slot?.status.state === 'offline');
      await service.remove('asleep');
    },
    START_MS,
  );

  test(
    'starts at once on the same port after it was killed, and its workers end by themselves',
    async () => {
      const orphans = await eventuallyAll();
      await service.kill('SIGKILL');
      await eventually('the workers have ended', async () => orphans.every((pid) => !isAlive(pid)));
      await service.start();
      await service.until('primary', 'answering', isAnswering);
      expect((await eventuallyAll()).some((pid) => orphans.includes(pid))).toBe(false);
      expect((await service.chat()).status).toBe(200);
    },
    START_MS,
  );

  test(
    'loses no request when it stops',
    async () => {
      const load = startLoad({ url: service.url, connections: CONNECTIONS, untilClosed: true });
      await eventually('answers', async () => load.answered() > CONNECTIONS);
      const workers = await eventuallyAll();
      // As a terminal does: it sends its signals to all processes of a service.
      for (const pid of workers) process.kill(pid, 'SIGTERM');
      await service.kill('SIGTERM');
      await load.stop();
      expect(load.failures).toEqual([]);
      expect(workers.filter(isAlive)).toEqual([]);
      await service.start();
    },
    START_MS,
  );
});

/** Those that run. After several kills, a worker is not started again at once. */
async function eventuallySome(): Promise<readonly number[]> {
  await eventually('a worker runs', async () => (await workersUp()) > 0);
  return await workersOf(service.pid());
}

async function workersUp(): Promise<number> {
  return [...(await metricOfWorkers(service.url, 'svc_worker_up')).values()].filter((up) => up === 1).length;
}

/** The workers, once all of them run and listen. */
async function eventuallyAll(): Promise<readonly number[]> {
  await eventually('all workers run', async () => (await workersUp()) === PROCESSES - 1, ALL_WITHIN_MS);
  return await workersOf(service.pid());
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
