/**
 * A service whose own process forwards no request for a text (`SVC_CONTROL_PLANE=separate`). `SVC_TEST_SECONDS`: how long thousands of slots are listed, scraped and edited.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { isAnswering, pause, startService, type Service } from '../../support/service.ts';
import { startLoad } from './support/steady-load.ts';
import { metricOfWorkers, workersOf } from './support/worker-processes.ts';

const SECONDS = Number(process.env['SVC_TEST_SECONDS'] ?? 10);
const SLOTS = 5000;
const CONNECTIONS = 4;
const FROZEN_MS = 3000;
const KILLS = 3;
/** The goal: so long may a turn of the event loop last that forwards. Judged where the test runs alone, since a core that is shared computes more slowly. */
const LONGEST_TURN_MS = 5;
/** The longest turn of the process that decides is longer by at least this factor. */
const BUSIER = 5;
const LONG_MS = 120_000 + 3000 * SECONDS;
/** Code that runs for the first time is compiled. */
const WARM_MS = 5000;
const EDIT_EVERY_MS = 200;
let service: Service;
let directory: string;

interface Turns {
  readonly longestCpuMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-turns-'));
  const recorder = new URL('support/turn-recorder.mjs', import.meta.url);
  recorder.searchParams.set('to', join(directory, 'turns'));
  const environment = { SVC_CONTROL_PLANE: 'separate', SVC_WORKERS: '1', NODE_OPTIONS: `--import=${recorder.href}` };
  service = await startService({ runtime: 'process', environment });
  await service.save('primary', 'provider = "gguf"\n[model]\ndefault = "demo-owl"\n');
  await service.until('primary', 'ready', isAnswering);
}, LONG_MS);
afterAll(async () => {
  await service.dispose();
  await rm(directory, { recursive: true, force: true });
}, LONG_MS);

/** Only the worker counts in this. */
const forwarded = async (): Promise<number> => (await metricOfWorkers(service.url, 'svc_worker_requests_total')).get('1') ?? 0;

async function onlyWorker(): Promise<number> {
  let found: readonly number[] = [];
  await eventually('the worker', async () => (found = await workersOf(service.pid())).length === 1);
  return found[0] ?? 0;
}

async function recordedTurns(pid: number): Promise<Turns> {
  const file = join(directory, `turns.${pid}`);
  await rm(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  await eventually('what was recorded', () => existsSync(file));
  return JSON.parse(await readFile(file, 'utf8'));
}

describe('A service that forwards no request for a text itself', () => {
  test('has them all forwarded by its worker, and manages through the same port', async () => {
    const before = await forwarded();
    const load = startLoad({ url: service.url, connections: CONNECTIONS });
    await eventually('100 answers', () => load.answered() >= 100);
    await load.stop();
    expect(load.failures).toEqual([]);
    await eventually('all are counted', async () => (await forwarded()) - before === load.answered());
    expect(service.output()).toContain('A process of its own forwards requests for texts, and this one decides');
  });

  test(
    'goes on while its process that decides is frozen, and knows afterwards what was asked',
    async () => {
      const load = startLoad({ url: service.url, connections: CONNECTIONS });
      await eventually('the first answers', () => load.answered() > CONNECTIONS);
      const before = await forwarded();
      process.kill(service.pid(), 'SIGSTOP');
      let during = 0;
      try {
        const reached = load.answered();
        const late = startLoad({ url: service.url, connections: CONNECTIONS });
        await pause(FROZEN_MS);
        await late.stop();
        expect(late.failures).toEqual([]);
        expect(late.answered()).toBeGreaterThan(CONNECTIONS);
        during = load.answered() - reached + late.answered();
      } finally {
        process.kill(service.pid(), 'SIGCONT');
      }
      await load.stop();
      expect(load.failures).toEqual([]);
      await eventually('they are counted', async () => (await forwarded()) - before >= during);
      expect(isAnswering(await service.slot('primary'))).toBe(true);
    },
    LONG_MS,
  );

  test(
    'forwards itself while its only worker is started again, and then leaves it to that one',
    async () => {
      const load = startLoad({ url: service.url, connections: CONNECTIONS });
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const victim = await onlyWorker();
        const failed = load.failures.length;
        process.kill(victim, 'SIGKILL');
        const reached = load.answered() + 2 * CONNECTIONS;
        await eventually('answers after the kill', () => load.answered() > reached);
        // One for each connection of the worker at most, and one for each that the service had just accepted.
        expect(load.failures.length - failed).toBeLessThanOrEqual(2 * CONNECTIONS);
        await eventually('another worker', async () => (await onlyWorker()) !== victim);
      }
      await load.stop();
      expect(load.lost).toEqual([]);
      await eventually('the worker has all new requests', async () => {
        const before = await forwarded();
        for (let request = 0; request < 5; request += 1) await (await service.chat({ max_tokens: 1 })).text();
        return (await forwarded()) - before === 5;
      });
    },
    LONG_MS,
  );

  test(
    `has no long turns where it forwards while ${SLOTS} slots are listed, scraped, edited, added and removed`,
    async () => {
      const text = (priority: number): string =>
        `load = "on-demand"\npriority = ${priority}\nprovider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n`;
      for (let slot = 0; slot < SLOTS; slot += 1) await writeFile(join(service.configDir, 'slots', `s-${slot}.toml`), text(0));
      await service.until(`s-${SLOTS - 1}`, 'declared', (slot) => slot !== undefined);
      const load = startLoad({ url: service.url, connections: CONNECTIONS });
      const done = { lists: 0, scrapes: 0, edits: 0 };
      const read = async (path: string): Promise<void> => void (await (await fetch(`${service.url}${path}`)).text());
      let goesOn = true;
      async function repeat(what: keyof typeof done, once: () => Promise<void>): Promise<void> {
        for (; goesOn; done[what] += 1) await once();
      }
      const loops = [
        repeat('lists', async () => await read('/api/slots')),
        repeat('scrapes', async () => await read('/api/metrics')),
        repeat('edits', async () => {
          await service.save(`s-${done.edits % SLOTS}`, text(done.edits % 7));
          if (done.edits % 2 === 0) await service.save(`new-${done.edits}`, text(1));
          else await service.remove(`new-${done.edits - 1}`);
          await pause(EDIT_EVERY_MS);
        }),
      ];
      await pause(WARM_MS);
      const processes = [await onlyWorker(), service.pid()] as const;
      const take = async (): Promise<readonly Turns[]> => await Promise.all(processes.map(recordedTurns));
      await take();
      const seen: (readonly Turns[])[] = [];
      const answered = load.answered();
      for (let second = 0; second < SECONDS; second += 5) {
        await pause(5000);
        seen.push(await take());
      }
      goesOn = false;
      await Promise.all(loops);
      await load.stop();
      const [longest = 0, ofController = 0] = processes.map((_, index) => Math.max(...seen.map((each) => each[index]?.longestCpuMs ?? 0)));
      if (process.env['SVC_TEST_SECONDS'] !== undefined)
        process.stdout.write(`${JSON.stringify({ ...done, answered: load.answered() - answered, seen })}\n`);
      expect(load.failures).toEqual([]);
      expect(Math.min(done.lists, done.scrapes, done.edits, load.answered() - answered)).toBeGreaterThan(0);
      expect(longest).toBeLessThanOrEqual(process.env['SVC_TEST_SECONDS'] === undefined ? ofController / BUSIER : LONGEST_TURN_MS);
    },
    LONG_MS,
  );

  test(
    'loses no request when it stops',
    async () => {
      const load = startLoad({ url: service.url, connections: CONNECTIONS, untilClosed: true });
      await eventually('answers', () => load.answered() > CONNECTIONS);
      await service.kill('SIGTERM');
      await load.stop();
      expect(load.failures).toEqual([]);
      await service.start();
      await service.until('primary', 'answering', isAnswering);
      await eventually('its worker forwards', async () => (await service.chat({ max_tokens: 1 })).ok && (await forwarded()) > 0);
    },
    LONG_MS,
  );
});
