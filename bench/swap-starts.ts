/** What swaps cost the requests of another slot: the event loop of the real service is held up while Node starts a process, because it forks and waits until the program runs. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { median, note, percentile, type Row } from './measure.ts';
import { residentMb, startBenchService, type BenchService } from './service-process.ts';
import type { Stall } from './start-times-process.ts';
import { waitUntil } from './wait-until.ts';

const SWAPS = Number(process.env['SVC_BENCH_SWAPS'] ?? 30);
const READY_MS = 60_000;
/** Until the service has written what it measured. */
const WRITTEN_MS = 1000;
const STALL_MS = 50;
const slotOf = (model: string): string => `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\nargs = ["--threads", "1"]\n`;

export async function measureStarts(): Promise<readonly Row[]> {
  const preload = path.resolve('bench/start-times-process.ts');
  const times = path.join(process.env['TMPDIR'] ?? '/tmp', `svc-start-times-${process.pid}`);
  const service = await startBenchService({ SVC_RUNTIME: 'process', NODE_OPTIONS: `--import=${preload}`, START_TIMES: times });
  try {
    for (const slot of ['primary', 'other']) await serve(service, slot, 'demo-fox');
    await pause(WRITTEN_MS);
    await writeFile(times, '');
    const ended = new AbortController();
    const load = Promise.all([requests(service, ended.signal), requests(service, ended.signal)]);
    for (let swap = 0; swap < SWAPS; swap += 1) await serve(service, 'primary', swap % 2 === 0 ? 'demo-owl' : 'demo-fox');
    ended.abort();
    const took = (await load).flat();
    await pause(WRITTEN_MS);
    const all = (await readFile(times, 'utf8'))
      .trim()
      .split('\n')
      .map((line): Stall => JSON.parse(line));
    return rowsOf(all, took, await residentMb(service.pid));
  } finally {
    await service.stop();
  }
}

function rowsOf(all: readonly Stall[], took: readonly number[], memoryMb: number): readonly Row[] {
  const starts = all.filter(({ kind }) => kind === 'start');
  const long = all.filter(({ wall }) => wall >= STALL_MS);
  const of = (values: readonly number[]): string =>
    [median(values), percentile(values, 0.95), Math.max(...values)].map((value) => value.toFixed(1)).join(', ');
  const count = (kind: Stall['kind']): number => long.filter((each) => each.kind === kind).length;
  return [
    note('start of a server: event loop held up, median, 95 %, longest', `${of(starts.map(({ wall }) => wall))} ms`),
    note('of that, CPU of the service', `${of(starts.map(({ cpu }) => cpu))} ms`),
    note('of that, waiting for a core', `${of(starts.map(({ waited }) => waited))} ms`),
    note('of that, waiting for the new process', `${of(starts.map(({ wall, cpu, waited }) => wall - cpu - waited))} ms`),
    note('memory of the service meanwhile', `${memoryMb.toFixed(0)} MB`),
    note(`stalls from ${STALL_MS} ms on: starts of servers, all others`, `${count('start')} of ${starts.length}, ${count('stall')}`),
    note('CPU of the service in these stalls, longest', `${Math.max(0, ...long.map(({ cpu }) => cpu)).toFixed(0)} ms`),
    note(
      'requests of another slot during swaps: number, median, slowest',
      `${took.length}, ${median(took).toFixed(0)}, ${Math.max(...took).toFixed(0)} ms`,
    ),
  ];
}

async function serve(service: BenchService, slot: string, model: string): Promise<void> {
  await service.save(slot, slotOf(model));
  const isServed = async (): Promise<boolean> => {
    const { status } = JSON.parse(await (await fetch(`${service.url}/api/slots/${slot}`)).text());
    return status?.model === model && ['ready', 'serving', 'idle'].includes(status.state);
  };
  await waitUntil(isServed, { withinMs: READY_MS, everyMs: 20, failure: () => `"${slot}" does not serve "${model}"` });
}

/** Sends one request after the other, and returns how long each took. */
async function requests({ url }: BenchService, ended: AbortSignal): Promise<readonly number[]> {
  const took: number[] = [];
  const body = JSON.stringify({ model: 'other', max_tokens: 1, messages: [{ role: 'user', content: 'Hello' }] });
  while (!ended.aborted) {
    const from = performance.now();
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`A request was answered with ${answer.status}`);
    took.push(performance.now() - from);
    await pause(5);
  }
  return took;
}
