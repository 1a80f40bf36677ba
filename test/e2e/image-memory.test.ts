/** Images for many clients, half of which leave, again and again: what the service keeps in memory does not grow with the number of images. */
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { SHAPES, writeCheckpoint } from '../support/comfyui/checkpoints.ts';
import { eventually } from '../support/eventually.ts';
import { recordingFile } from '../support/hardware/recorded-machines.ts';
import { INSPECTED, inspect, type Inspected } from '../support/retained-memory.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const TURBO = 'sdxl-turbo';
const CLIENTS = 10;
const QUEUED = 50;
/** The list of failed requests (200) and the cache of images are full after these. */
const WARM_UP = 12;
const ROUNDS = 24;
/** Of each image, so that one that is kept is seen. */
const IMAGE_BYTES = 20_000;
/** What V8 learns about the program comes and goes with some 300 bytes for each request in these rounds. A job with its workflow has several thousand. */
const MOST_BYTES_FOR_EACH = 800;
const WITHIN_MS = 60_000;
/** Each way to answer. Two requests after each other have the same one, and the second one leaves. */
const WAYS = [
  { response_format: 'b64_json' },
  { response_format: 'url' },
  { stream: true, partial_images: 2, steps: 4 },
  { response_format: 'b64_json', n: 2 },
  { response_format: 'url', n: 2 },
] as const;
const Queue = z.object({ queue_running: z.array(z.unknown()), queue_pending: z.array(z.unknown()) });
const Status = z.object({ slots: z.array(z.object({ name: z.string(), in_flight: z.number() })) });
const agents = Array.from({ length: CLIENTS }, () => new Agent({ keepAlive: true, maxSockets: QUEUED / CLIENTS }));
let bin = '';
let service: Service;
let inspected: Inspected;
let server = '';

beforeAll(async () => {
  bin = await mkdtemp(path.join(tmpdir(), 'svc-bin-'));
  await symlink(path.resolve('test/support/comfyui/comfyui.mjs'), path.join(bin, 'comfyui'));
  service = await startService({
    runtime: 'process',
    environment: {
      ...INSPECTED,
      PATH: `${bin}:${path.dirname(process.execPath)}:${process.env['PATH']}`,
      SVC_HARDWARE_FILE: recordingFile('w7900'),
      SVC_IMAGE_CACHE_LIMIT: '2Mi',
    },
  });
  await writeCheckpoint(path.join(service.modelsDir, 'image/models/checkpoints', TURBO, 'sd_xl_turbo_1.0_fp16.safetensors'), SHAPES.sdxl);
  await service.save('img', `[model]\ndefault = "${TURBO}"\n`);
  const slot = await service.until('img', 'ready', isAnswering);
  const endpoint = slot.status.endpoint ?? '';
  server = endpoint.startsWith('http') ? endpoint : `http://${endpoint}`;
  inspected = await inspect({ pid: service.pid(), output: service.output });
}, 90_000);
afterAll(async () => {
  for (const agent of agents) agent.destroy();
  inspected.close();
  await service.dispose();
  await rm(bin, { recursive: true });
});

const behave = async (behaviour: object): Promise<void> =>
  void (await (await fetch(`${server}/stand-in`, { method: 'POST', body: JSON.stringify(behaviour) })).text());

async function queued(): Promise<number> {
  const queue = Queue.parse(await (await fetch(`${server}/queue`)).json());
  return queue.queue_running.length + queue.queue_pending.length;
}

interface Drawing {
  /** The status, once the answer is complete; rejects if it was left. */
  readonly ended: Promise<number | undefined>;
  leave(): void;
}

function draw(index: number): Drawing {
  const request = httpRequest(`${service.url}/v1/images/generations`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    agent: agents[index % CLIENTS] ?? false,
  });
  const ended = new Promise<number | undefined>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => void response.resume().on('end', () => resolve(response.statusCode)));
  });
  ended.catch(() => undefined);
  request.end(JSON.stringify({ prompt: `image ${index}`, size: '64x64', ...WAYS[Math.floor(index / 2) % WAYS.length] }));
  return { ended, leave: () => void request.destroy() };
}

/** Returns the bytes that the service retains after 50 requests, of which it has answered half. */
async function measureRound(): Promise<number> {
  await behave({ paused: true });
  const drawings = Array.from({ length: QUEUED }, (_, index) => draw(index));
  await eventually(`${QUEUED} are queued`, async () => (await queued()) === QUEUED, WITHIN_MS);
  for (const [index, drawing] of drawings.entries()) if (index % 2 === 1) drawing.leave();
  await eventually('those that were left are not', async () => (await queued()) === QUEUED / 2, WITHIN_MS);
  await behave({ paused: false });
  const statuses = await Promise.all(drawings.filter((_, index) => index % 2 === 0).map(async ({ ended }) => ended));
  expect(statuses).toEqual(statuses.map(() => 200));
  expect(await queued()).toBe(0);
  const isIdle = async (): Promise<boolean> =>
    Status.parse(await (await fetch(`${service.url}/api/status`)).json()).slots.every(({ in_flight: count }) => count === 0);
  await eventually('no request is left', isIdle, WITHIN_MS);
  return await inspected.retainedBytes();
}

test('memory stays flat over rounds of 50 images for ten clients, half of which leave', async () => {
  await behave({ noteBytes: IMAGE_BYTES });
  for (let round = 0; round < WARM_UP; round += 1) await measureRound();
  const retained: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) retained.push(await measureRound());
  expect(slopeOf(retained) / QUEUED).toBeLessThan(MOST_BYTES_FOR_EACH);
  // Nothing half-written either.
  expect((await readdir(path.join(service.dir, 'state/images'))).filter((name) => !name.endsWith('.png'))).toEqual([]);
}, 300_000);

/** By how much values grow from each to the next: the median of the slopes between all pairs (Theil and Sen), which single outliers do not change. */
function slopeOf(values: readonly number[]): number {
  const slopes = values.flatMap((from, index) => values.slice(index + 1).map((to, step) => (to - from) / (step + 1)));
  return slopes.toSorted((a, b) => a - b)[Math.floor(slopes.length / 2)] ?? 0;
}
