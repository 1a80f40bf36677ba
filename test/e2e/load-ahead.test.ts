/** `lifecycle.warm` and `prewarm` of a real service with the embedded engine, whose wall clock the tests set. Two slots share memory for one. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { chatText, isAnswering, pause, servingProcess, startService, type Service } from '../support/service.ts';

const ZONE = 'Europe/Berlin';
const HALF_OF_MEMORY = '[resources]\nmemory = "400Mi"';
const RESYNC_MS = 1000;
/** A day in steps of ten minutes, with requests in the one from 08:50: the slot is needed until 09:20. */
const STEPS = '1'.padStart(54, '0').padEnd(144, '0');
const WEEKDAYS = ['2026-12-01', '2026-12-02', '2026-12-03', '2026-12-04'];

let service: Service;
let directory: string;

/** The service's wall clock shows `time` now, and goes on. */
async function setClock(time: string): Promise<void> {
  await writeFile(path.join(directory, 'ahead'), String(Date.parse(time) - Date.now()));
  // The service reads the file fifty times a second.
  await pause(200);
}

const save = async (name: string, model: string, lifecycle: string): Promise<void> =>
  await service.save(
    name,
    `provider = "gguf"\nbackend = "cpu"\nload = "on-demand"\n[lifecycle]\n${lifecycle}\n[model]\ndefault = "${model}"\n${HALF_OF_MEMORY}\n`,
  );
const warm = async (...entries: readonly string[]): Promise<void> => await save('primary', 'demo-fox', `warm = ${JSON.stringify(entries)}`);
const explain = async (name = 'primary'): Promise<string> => {
  const { text }: { text: string } = JSON.parse(await (await fetch(`${service.url}/api/slots/${name}/explain`)).text());
  return text;
};
const loaded = async (): Promise<unknown> => await service.until('primary', 'loaded', isAnswering);
const unloaded = async (): Promise<unknown> => await service.until('primary', 'unloaded', (slot) => slot?.status.state === 'offline');
/** It stays unloaded over some passes. */
async function staysUnloaded(): Promise<void> {
  await unloaded();
  for (let look = 0; look < 5; look += 1) {
    await pause(RESYNC_MS / 2);
    expect((await service.slot('primary'))?.status.state).toBe('offline');
  }
}
/** Requests are refused until the gateway knows of the slot. */
async function askSecond(): Promise<void> {
  let answer = await service.chat({ model: 'second' });
  await eventually('the gateway knows the second slot', async () => {
    if (answer.status === 404) answer = await service.chat({ model: 'second' });
    return answer.status !== 404;
  });
  expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-owl']);
}
const scheduled = (entry: string): string =>
  `because: The slot is loaded ahead of requests: "${entry}" in time zone "${ZONE}" [WarmScheduled]`;

async function begin(time: string): Promise<void> {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-load-ahead-'));
  await writeFile(path.join(directory, 'ahead'), String(Date.parse(time) - Date.now()));
  service = await startService({
    runtime: 'process',
    environment: {
      NODE_OPTIONS: `--import=${path.resolve('test/support/stepped-wall-clock.mjs')}`,
      TEST_WALL_CLOCK_FILE: path.join(directory, 'ahead'),
      SVC_TIME_ZONE: ZONE,
      SVC_MEMORY_BUDGET: '600Mi',
      SVC_RESYNC: `${RESYNC_MS}ms`,
    },
  });
}

async function end(): Promise<void> {
  await service?.dispose();
  await rm(directory, { recursive: true });
}

describe('A slot with a schedule', () => {
  const OFFICE = 'Mon-Fri 08:30-18:00';
  // A Monday.
  beforeAll(async () => await begin('2026-12-07T08:00:00+01:00'), 120_000);
  afterAll(end, 60_000);

  test('is loaded when its time begins, without a request, and says which one it is', async () => {
    await warm(OFFICE);
    await staysUnloaded();
    expect(await explain()).not.toContain('ahead of requests');
    await setClock('2026-12-07T08:29:57+01:00');
    await loaded();
    const { status } = await service.until('primary', 'loaded', isAnswering);
    expect(await explain()).toContain(scheduled(OFFICE));
    const since = status.conditions.find(({ type }) => type === 'Ready')?.last_transition_at ?? '';
    expect(Date.parse(since)).toBeGreaterThanOrEqual(Date.parse('2026-12-07T08:30:00+01:00'));
  }, 60_000);

  test('is unloaded by a clock that jumps over the end or back over the beginning, and loaded by one that jumps over the beginning', async () => {
    await setClock('2026-12-07T19:00:00+01:00');
    await unloaded();
    expect(await explain()).toContain('The slot loads on demand, and no request has asked for it [NotAskedFor]');
    await setClock('2026-12-08T09:00:00+01:00');
    await loaded();
    await setClock('2026-12-08T08:00:00+01:00');
    await unloaded();
    await setClock('2026-12-08T17:00:00+01:00');
    await loaded();
    expect(await explain()).toContain(scheduled(OFFICE));
  }, 120_000);

  test('gives its memory to a request for another slot, says so, and gets it back', async () => {
    await save('second', 'demo-owl', 'idle_timeout = "3s"');
    await loaded();
    await askSecond();
    expect(await servingProcess(service)).toBeUndefined();
    await service.until('primary', 'unloaded', (slot) => slot?.status.state === 'offline');
    expect(await explain()).toContain('no request has asked for it; to load it ahead of requests, no memory is free');
    await loaded();
    expect((await service.slot('second'))?.status.state).toBe('offline');
    expect(await explain()).toContain(scheduled(OFFICE));
  }, 120_000);

  test('takes nothing from a slot that is idle', async () => {
    await service.remove('primary');
    await save('second', 'demo-owl', 'idle_timeout = "1h"');
    await askSecond();
    const before = await servingProcess(service, 'second');
    await warm(OFFICE);
    await staysUnloaded();
    expect(await servingProcess(service, 'second')).toBe(before);
    await service.remove('second');
    await loaded();
  }, 120_000);

  test('keeps its server where entries overlap, and names the one that applies', async () => {
    const entries = ['Tue 08:00-10:00', 'Tue 09:00-12:00', 'Tue-Wed 12:00-12:30'];
    await setClock('2026-12-08T09:30:00+01:00');
    await warm(...entries);
    await loaded();
    await eventually('the first entry is named', async () => (await explain()).includes(scheduled('Tue 08:00-10:00')));
    const before = await servingProcess(service);
    await setClock('2026-12-08T10:30:00+01:00');
    await eventually('the second entry is named', async () => (await explain()).includes(scheduled('Tue 09:00-12:00')));
    await setClock('2026-12-08T11:59:58+01:00');
    await eventually('the third entry is named', async () => (await explain()).includes(scheduled('Tue-Wed 12:00-12:30')));
    expect(await servingProcess(service)).toBe(before);
    await setClock('2026-12-08T12:31:00+01:00');
    await unloaded();
  }, 60_000);

  test('is loaded after a gap of its time zone in which it would begin, and never within one', async () => {
    // On 28 March 2027, a Sunday, the clocks go from 02:00 to 03:00.
    await setClock('2027-03-28T01:30:00+01:00');
    await warm('Sun 02:10-02:50');
    await setClock('2027-03-28T01:59:58+01:00');
    await pause(2500);
    await staysUnloaded();
    await setClock('2027-03-28T01:30:00+01:00');
    await warm('Sun 02:30-05:00');
    await staysUnloaded();
    await setClock('2027-03-28T01:59:58+01:00');
    await loaded();
    expect(await explain()).toContain(scheduled('Sun 02:30-05:00'));
  }, 120_000);
});

describe('A slot that learns', () => {
  // A Monday, an hour before requests came on four weekdays.
  beforeAll(async () => {
    await begin('2026-12-07T07:30:00+01:00');
    await service.kill('SIGTERM');
    const learned = path.join(service.dir, 'state/learned');
    await mkdir(learned, { recursive: true });
    const days = WEEKDAYS.map((date) => ({ date, steps: STEPS }));
    await writeFile(path.join(learned, 'primary.json'), JSON.stringify({ days, outcomes: [] }));
    await save('primary', 'demo-fox', 'idle_timeout = "1h"\nprewarm = "learned"');
    await service.start();
  }, 120_000);
  afterAll(end, 60_000);

  test('is loaded shortly before the time at which requests came, and says on which days they came', async () => {
    await staysUnloaded();
    await setClock('2026-12-07T08:29:58+01:00');
    await loaded();
    // The request of each day came between 08:50 and 09:00.
    expect(await explain()).toMatch(
      /because: The slot is loaded ahead of requests: needed between 08:30 and 09:00 on 4 of the last 4 weekdays of use \[WarmForecast\]/,
    );
  }, 60_000);

  test('counts a request as a hit, and is then a slot like any other', async () => {
    const before = await servingProcess(service);
    expect(await chatText(await service.chat({ model: 'primary' }))).toBe(DEMO_SENTENCES['demo-fox']);
    expect(await servingProcess(service)).toBe(before);
    const metrics = async (): Promise<string> => (await fetch(`${service.url}/api/metrics`)).text();
    await eventually('the hit is counted', async () => /svc_loads_ahead_total\{[^}]*hit[^}]*\} 1/.test(await metrics()));
    await eventually('it is no longer ahead', async () => !(await explain()).includes('ahead of requests'));
  }, 60_000);
});
