/** Whether passes over many slots delay requests: the latency of requests through a gateway, and how long the turns of its event loop take, while passes take place. */
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { slotNames } from './cluster-bed.ts';
import { percentile } from './measure.ts';
import { applySlotSpec, type Ground, type Replica } from './scale-ground.ts';

export interface PassFigures {
  readonly scene: string;
  /** Milliseconds. */
  readonly latency: { readonly p50: number; readonly p99: number; readonly max: number };
  /** How long turns of the event loop took, milliseconds. */
  readonly turns: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly passes: number;
  /** Milliseconds. */
  readonly meanPass: number;
}

/** Each scene includes at least one pass that the timer starts: `SVC_RESYNC` is 15 s. */
const SCENE_MS = 20_000;
const PER_SECOND = 100;
const BURST = 100;

export async function measurePasses(ground: Ground, { service }: Replica, slots: number): Promise<readonly PassFigures[]> {
  const edit = async (count: number, model: string): Promise<void> => {
    await Promise.all(
      slotNames(Math.min(count, slots - 1), 1).map(async (name) => await applySlotSpec(ground.api, name, { model: { default: model } })),
    );
  };
  const target = slotNames(1)[0] ?? '';
  const scenes: readonly (readonly [string, () => Promise<void>])[] = [
    ['at rest', async () => undefined],
    ['one edit', async () => await edit(1, 'demo-owl')],
    [`${BURST} edits at once`, async () => await edit(BURST, 'demo-clock')],
  ];
  const figures: PassFigures[] = [];
  await drive(service.url, target, 2000);
  for (const [scene, act] of scenes) {
    const before = await readPasses(service.url);
    const [latencies] = await Promise.all([drive(service.url, target, SCENE_MS), pause(1000).then(act)]);
    const after = await readPasses(service.url);
    const passes = after.count - before.count;
    figures.push({
      scene,
      latency: spread(latencies),
      turns: after.turns,
      passes,
      meanPass: passes === 0 ? 0 : ((after.seconds - before.seconds) / passes) * 1000,
    });
  }
  return figures;
}

/** Sends requests at a fixed pace, whether or not earlier ones were answered, and returns the milliseconds that each took. */
async function drive(url: string, slot: string, forMs: number): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const body = JSON.stringify({ model: slot, messages: [{ role: 'user', content: 'Hello' }] });
  const taken: Promise<number>[] = [];
  const startedAt = performance.now();
  for (let index = 0; performance.now() - startedAt < forMs; index += 1) {
    await pause(Math.max(0, startedAt + (index * 1000) / PER_SECOND - performance.now()));
    taken.push(send(`${url}/v1/chat/completions`, body, agent));
  }
  const all = await Promise.all(taken);
  agent.destroy();
  return all;
}

async function send(url: string, body: string, agent: Agent): Promise<number> {
  const sentAt = performance.now();
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  await new Promise<void>((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
      answer.resume();
      answer.on('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(`A request failed with ${answer.statusCode}`))));
    });
    sent.on('error', reject);
    sent.end(body);
  });
  return performance.now() - sentAt;
}

/** Also begins a new measurement of the turns. */
async function readPasses(url: string) {
  const text = await (await fetch(`${url}/api/metrics`)).text();
  const valueOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  const ms = (name: string): number => valueOf(`nodejs_eventloop_delay_${name}_seconds`) * 1000;
  return {
    count: valueOf('svc_reconcile_pass_seconds_count'),
    seconds: valueOf('svc_reconcile_pass_seconds_sum'),
    turns: { p50: ms('p50'), p99: ms('p99'), max: ms('max') },
  };
}

function spread(values: readonly number[]): PassFigures['latency'] {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99), max: percentile(values, 1) };
}
