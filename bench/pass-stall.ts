/** The longest time that a request waits behind a pass over a thousand slots: one client asks without a pause while slot files are edited. And how long such a pass lasts, as the service itself measures it. */
import { request, Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { atMost, median, note, type Row } from './measure.ts';
import { startRealService, type Bed } from './proxies.ts';

const SLOTS = 1000;
const EDITS = 15;
const BETWEEN_MS = 400;
/** Requests per edit, so that most of them did not wait. */
const FEWEST = 10;
const BODY = JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'z'.repeat(530) }] });

export interface PassStalls {
  /** Of each edit, in milliseconds. */
  readonly stalls: readonly number[];
  /** Of the passes under this load. */
  readonly passes: { readonly seconds: number; readonly count: number };
}

export async function measurePassStall(bed: Bed): Promise<PassStalls> {
  const { service, port } = await startRealService(bed, { idle: SLOTS });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  const ended = new AbortController();
  try {
    const load = askUntil(ended.signal, async () => void times.push(await ask(port, agent)));
    await pause(3000);
    const stalls: number[] = [];
    const before = await readPasses(service.url);
    // Writing the metrics of a thousand slots delays requests itself, and is no pass.
    await pause(BETWEEN_MS);
    for (let edit = 0; edit < EDITS; edit += 1) {
      times.length = 0;
      await service.save(
        'at-rest-0',
        `load = "on-demand"\npriority = ${edit}\nprovider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n`,
      );
      await pause(BETWEEN_MS);
      // On a busy machine the pass may last longer: the request behind it must have ended.
      while (times.length < FEWEST) await pause(20);
      stalls.push(Math.max(...times) - median(times));
    }
    ended.abort();
    await load;
    process.stdout.write(`  longest request behind each of ${EDITS} edits: ${stalls.map((ms) => ms.toFixed(1)).join(', ')} ms\n`);
    const after = await readPasses(service.url);
    return { stalls, passes: { seconds: after.seconds - before.seconds, count: after.count - before.count } };
  } finally {
    agent.destroy();
    await service.stop();
  }
}

/** Of all starts together. */
export function passStallRows(starts: readonly PassStalls[]): readonly Row[] {
  const stall = median(starts.flatMap(({ stalls }) => stalls));
  const sum = (of: (start: PassStalls) => number): number => starts.reduce((all, start) => all + of(start), 0);
  const meanMs = (1000 * sum(({ passes }) => passes.seconds)) / sum(({ passes }) => passes.count);
  return [
    atMost(`longest stall of a request behind a pass, ${SLOTS} slots, median of edits`, stall, { limit: 10, unit: 'ms', digits: 1 }),
    note('  a whole pass under this load, mean', `${meanMs.toFixed(1)} ms`),
  ];
}

/** Of all passes since the start. */
async function readPasses(url: string): Promise<PassStalls['passes']> {
  const text = await (await fetch(`${url}/api/metrics`)).text();
  const valueOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return { seconds: valueOf('svc_reconcile_pass_seconds_sum'), count: valueOf('svc_reconcile_pass_seconds_count') };
}

async function askUntil(signal: AbortSignal, once: () => Promise<void>): Promise<void> {
  while (!signal.aborted) await once();
}

/** Returns the milliseconds until the end of the answer. */
function ask(port: number, agent: Agent): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const asked = request(
      { port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', agent, headers: { 'content-type': 'application/json' } },
      (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`A request was answered with ${answer.statusCode}`));
        answer.resume().once('end', () => resolve(performance.now() - startedAt));
      },
    );
    asked.once('error', reject);
    asked.end(BODY);
  });
}
