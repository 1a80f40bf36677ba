/**
 * How long the thread that forwards is busy with something else, while thousands of slots are listed, scraped, edited, and one changes its model: with one process, and with a
 * process of its own for requests (`SVC_CONTROL_PLANE=separate`), and what that one costs.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startLoad } from '../test/turbo/workers/support/steady-load.ts';
import { workersOf } from '../test/turbo/workers/support/worker-processes.ts';
import { atMost, note, type Row } from './measure.ts';
import { startRealService, type Bed, type RealService } from './proxies.ts';
import { residentMb } from './service-process.ts';
import { startViewers } from './viewers.ts';
import { waitUntil } from './wait-until.ts';

const SLOTS = 5000;
const ROUND_MS = 5000;
const ROUNDS = 3;
const WARM_MS = 8000;
const EDIT_EVERY_MS = 200;
const SWAP_EVERY_MS = 1500;
const VIEWERS = 50;
const RECORDER = new URL('../test/turbo/workers/support/turn-recorder.mjs', import.meta.url);

interface Turns {
  readonly longestCpuMs: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

type Disturb = (service: RealService['service'], url: string, count: number) => Promise<void>;

const read = async (url: string): Promise<void> => void (await (await fetch(url)).text());
const onDemand = (priority: number): string =>
  `load = "on-demand"\npriority = ${priority}\nprovider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n`;

async function edit(service: RealService['service'], _: string, count: number): Promise<void> {
  await service.save(`at-rest-${count % SLOTS}`, onDemand(count % 7));
  await pause(EDIT_EVERY_MS);
}

/** While a slot is edited five times a second, so that there are events. */
const VIEWED = `edits, seen by ${VIEWERS} open pages`;

const DISTURBANCES: Readonly<Record<string, Disturb>> = {
  'nothing else': async () => await pause(EDIT_EVERY_MS),
  'whole lists': async (_, url) => await read(`${url}/api/slots`),
  'scrapes of metrics': async (_, url) => await read(`${url}/api/metrics`),
  edits: edit,
  [VIEWED]: edit,
  async 'new and removed slots'(service, _, count) {
    if (count % 2 === 0) await service.save(`added-${count}`, onDemand(1));
    else await service.remove(`added-${count - 1}`);
    await pause(EDIT_EVERY_MS);
  },
  async 'swaps of another slot'(service, _, count) {
    await service.save(
      'streams',
      `provider = "gguf"\nbackend = "cpu"\npriority = ${count % 3}\n[model]\ndefault = "${count % 2 === 0 ? 'demo-fox' : 'demo-owl'}"\n`,
    );
    await pause(SWAP_EVERY_MS);
  },
};

export async function measurePlanes(): Promise<readonly Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const bed = { directory, started: [] };
  const one = await measurePlane(bed, 'shared');
  const apart = await measurePlane(bed, 'separate');
  await rm(directory, { recursive: true, force: true });
  const rows = Object.keys(DISTURBANCES).flatMap((name) => {
    const [before, after] = [one.turns.get(name), apart.turns.get(name)];
    if (before === undefined || after === undefined) return [];
    return [
      atMost(`${name}: longest turn of the process for requests, CPU`, after.longestCpuMs, { limit: 5, unit: 'ms', digits: 1 }),
      note(`${name}: its event loop delayed, 99.9 % and longest`, spread(after)),
      note(`${name}: both where one process does everything`, `${before.longestCpuMs.toFixed(1)} ms; ${spread(before)}`),
    ];
  });
  return [
    ...rows,
    atMost('memory of the process for requests, five slots and no requests, its own', apart.privateMb, {
      limit: 30,
      unit: 'MB',
      digits: 1,
    }),
    note(
      `memory with ${SLOTS} slots: deciding process and that for requests`,
      apart.memoryMb.map((mb) => `${mb.toFixed(0)} MB`).join(', '),
    ),
    note(`memory with ${SLOTS} slots where one process does everything`, one.memoryMb.map((mb) => `${mb.toFixed(0)} MB`).join(', ')),
  ];
}

const spread = ({ p999Ms, maxMs }: Turns): string => `${p999Ms.toFixed(1)}, ${maxMs.toFixed(1)} ms`;

async function measurePlane(bed: Bed, plane: 'shared' | 'separate') {
  const to = join(bed.directory, `turns-${plane}.json`);
  const recorder = new URL(RECORDER);
  recorder.searchParams.set('to', to);
  const settings = { SVC_CONTROL_PLANE: plane };
  const small = await startRealService(bed, { settings });
  await pause(ROUND_MS);
  const [worker] = await workersOf(small.service.pid);
  const privateMb = worker === undefined ? 0 : await privateOf(worker);
  await small.service.stop();
  const { service } = await startRealService(bed, { idle: SLOTS, settings: { ...settings, NODE_OPTIONS: `--import=${recorder.href}` } });
  const processes = [service.pid, ...(await workersOf(service.pid))];
  const turns = new Map<string, Turns>();
  try {
    for (const [name, disturb] of Object.entries(DISTURBANCES)) {
      const found = await recordDuring(service, { name, disturb, pid: processes.at(-1) ?? 0, to });
      turns.set(name, found);
    }
    const memoryMb = await Promise.all(processes.map(residentMb));
    return { turns, privateMb, memoryMb };
  } finally {
    await service.stop();
  }
}

interface Recording {
  readonly name: string;
  readonly disturb: Disturb;
  readonly pid: number;
  readonly to: string;
}

/** The worst of several rounds, under a load of four clients. */
async function recordDuring(service: RealService['service'], { name, disturb, pid, to }: Recording): Promise<Turns> {
  const load = startLoad({ url: service.url, connections: 4, body: { model: 'primary' } });
  const viewers = name === VIEWED ? startViewers(service.url, VIEWERS) : undefined;
  await viewers?.opened;
  let goesOn = true;
  const disturbing = (async () => {
    for (let count = 0; goesOn; count += 1) await disturb(service, service.url, count);
  })();
  const take = async (): Promise<Turns> => {
    const file = `${to}.${pid}`;
    await rm(file, { force: true });
    process.kill(pid, 'SIGUSR2');
    await waitUntil(() => existsSync(file), { withinMs: 10_000, everyMs: 10, failure: () => 'No turns were recorded' });
    return JSON.parse(await readFile(file, 'utf8'));
  };
  await pause(WARM_MS);
  await take();
  const seen: Turns[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await pause(ROUND_MS);
    seen.push(await take());
  }
  goesOn = false;
  await disturbing;
  await viewers?.stop();
  await load.stop();
  process.stdout.write(
    `  ${name}: ${seen.map(({ longestCpuMs, maxMs }) => `${longestCpuMs.toFixed(1)} (${maxMs.toFixed(1)})`).join(', ')} ms; ${load.answered()} answers, ${load.lost.length} lost\n`,
  );
  const most = (of: (turns: Turns) => number): number => Math.max(...seen.map(of));
  return { longestCpuMs: most((each) => each.longestCpuMs), p999Ms: most((each) => each.p999Ms), maxMs: most((each) => each.maxMs) };
}

/** What a process adds to the memory that is in use, in MB (10^6 bytes): pages of the program of Node are shared. */
async function privateOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return [...text.matchAll(/^Private_\w+: +(\d+) kB/gm)].reduce((sum, [, kb]) => sum + (Number(kb) * 1024) / 1e6, 0);
}
