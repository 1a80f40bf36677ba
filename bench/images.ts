/**
 * What the service adds to the images of ComfyUI, with a stand-in that draws as fast as it is told: the same job is sent to it directly and through the service, in turns. Memory is
 * that of the process of the service, which the kernel reports.
 */
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { WebSocket } from 'ws';
import { buildWorkflow } from '../src/providers/image/decide/build-workflow.ts';
import { exactJson } from '../src/providers/image/decide/workflow-parameters.ts';
import { SHAPES, writeCheckpoint } from '../test/support/comfyui/checkpoints.ts';
import { recordingFile } from '../test/support/hardware/recorded-machines.ts';
import { atMost, median, type Row } from './measure.ts';
import { cpuSeconds, residentMb, startBenchService, type BenchService } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const MODEL = 'sdxl-turbo';
const CHECKPOINT = `${MODEL}/sd_xl_turbo_1.0_fp16.safetensors`;
const PAIRS = 60;
const LONG_MS = 2000;
const LONG_PAIRS = 5;
/** Larger than any image of these models, so that the memory of one is seen beside that of everything else. */
const IMAGE_MB = 24;
const ROUNDS = 12;
const QUEUED = 50;

export async function measureImages(): Promise<readonly Row[]> {
  const bin = await mkdtemp(path.join(tmpdir(), 'svc-bench-images-'));
  await symlink(path.resolve('test/support/comfyui/comfyui.mjs'), path.join(bin, 'comfyui'));
  const environment = {
    PATH: `${bin}:${path.dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
    SVC_RUNTIME: 'process',
    SVC_HARDWARE_FILE: recordingFile('w7900'),
  };
  const service = await startBenchService(environment);
  try {
    await writeCheckpoint(path.join(service.stateDir, 'models/image/models/checkpoints', CHECKPOINT), SHAPES.sdxl);
    await service.save('img', `[model]\ndefault = "${MODEL}"\n`);
    const isReady = async (): Promise<boolean> => (await service.status()).some(({ name, ready }) => name === 'img' && ready);
    await waitUntil(isReady, { withinMs: 60_000, everyMs: 50, failure: () => 'The slot "img" did not become ready' });
    const server = await endpointOf(service);
    return [...(await measureTime(service, server)), ...(await measureBatch(service, server)), ...(await measureQueue(service, server))];
  } finally {
    await service.stop();
    await rm(bin, { recursive: true, force: true });
  }
}

async function endpointOf({ url }: BenchService): Promise<string> {
  const slot: { readonly status: { readonly endpoint: string } } = JSON.parse(await (await fetch(`${url}/api/slots/img`)).text());
  const { endpoint } = slot.status;
  return endpoint.startsWith('http') ? endpoint : `http://${endpoint}`;
}

const behave = async (server: string, behaviour: object): Promise<void> =>
  void (await (await fetch(`${server}/stand-in`, { method: 'POST', body: JSON.stringify(behaviour) })).text());

async function measureTime(service: BenchService, server: string): Promise<readonly Row[]> {
  await behave(server, { stepMs: 1 });
  for (let index = 0; index < 10; index += 1) await drawThrough(service.url, index);
  const short = await compare(service.url, server, PAIRS);
  const before = await cpuSeconds(service.pid);
  for (let index = 0; index < PAIRS; index += 1) await drawThrough(service.url, index + 10_000);
  const computedMs = (1000 * ((await cpuSeconds(service.pid)) - before)) / PAIRS;
  await behave(server, { stepMs: LONG_MS });
  const long = await compare(service.url, server, LONG_PAIRS);
  await behave(server, { stepMs: LONG_MS, socket: 'refused' });
  const alone: number[] = [];
  for (let index = 0; index < LONG_PAIRS; index += 1)
    alone.push((await timed(async () => drawThrough(service.url, index + 20_000))) - LONG_MS);
  await behave(server, { stepMs: 1, socket: 'normal' });
  process.stdout.write(`  Extra time of ${PAIRS} images: ${short.map((ms) => ms.toFixed(1)).join(' ')} ms\n`);
  return [
    atMost('an image through the service, beside the server alone', median(short), { limit: 5, unit: 'ms', digits: 1 }),
    // On a machine that is busy with other things, this is the part of the row above that is the service's own.
    atMost('what the service computes for it, all threads together', computedMs, { limit: 5, unit: 'ms', digits: 1 }),
    atMost('an image of 2 s is answered after it, beside the server alone', Math.max(...long), { limit: 50, unit: 'ms', digits: 1 }),
    atMost('the same without a WebSocket, with everything else', median(alone), { limit: 50, unit: 'ms', digits: 1 }),
  ];
}

/** Milliseconds that each image takes more through the service, in turns, so that both have the same machine. */
async function compare(url: string, server: string, pairs: number): Promise<readonly number[]> {
  const extra: number[] = [];
  for (let index = 0; index < pairs; index += 1) {
    const direct = await timed(async () => drawDirectly(server, 2 * index));
    extra.push((await timed(async () => drawThrough(url, 2 * index + 1))) - direct);
  }
  return extra;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** As the service does it, without anything that translates or checks. */
async function drawDirectly(server: string, seed: number): Promise<void> {
  const id = crypto.randomUUID();
  const socket = new WebSocket(`${server.replace('http', 'ws')}/ws?clientId=${id}`);
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('message', (message, isBinary) => {
      const text = isBinary || !Buffer.isBuffer(message) ? '' : message.toString();
      if (text.includes('"executing"') && text.includes('"node":null')) resolve();
    });
  });
  await new Promise((resolve) => socket.once('open', resolve));
  const { workflow } = buildWorkflow({
    model: { family: 'sdxl-turbo', companions: undefined },
    checkpoint: CHECKPOINT,
    parameters: { prompt: 'a fox', negativePrompt: '', n: 1, size: { width: 512, height: 512 }, steps: 1, cfg: 1 },
    seed: BigInt(seed),
    filenamePrefix: `svc/${id}`,
  });
  await fetch(`${server}/prompt`, { method: 'POST', body: `{"prompt":${exactJson(workflow)},"prompt_id":"${id}","client_id":"${id}"}` });
  await ended;
  socket.close();
  const history: Readonly<
    Record<string, { readonly outputs: Readonly<Record<string, { readonly images: readonly Record<string, string>[] }>> }>
  > = JSON.parse(await (await fetch(`${server}/history/${id}`)).text());
  const query = new URLSearchParams(history[id]?.outputs['9']?.images[0]);
  await (await fetch(`${server}/view?${query.toString()}`)).arrayBuffer();
}

async function drawThrough(url: string, seed: number, fields: object = {}): Promise<number> {
  const body = JSON.stringify({ prompt: 'a fox', response_format: 'b64_json', seed, ...fields });
  const answer = await fetch(`${url}/v1/images/generations`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  let bytes = 0;
  for await (const piece of answer.body ?? []) bytes += piece.length;
  if (answer.status !== 200) throw new Error(`The service answered ${answer.status}`);
  return bytes;
}

async function measureBatch({ url, pid }: BenchService, server: string): Promise<readonly Row[]> {
  await behave(server, { noteBytes: IMAGE_MB * 1e6 });
  await drawThrough(url, 1, { n: 4, size: '64x64' });
  const grown: number[] = [];
  for (let index = 0; index < 3; index += 1) {
    const before = await residentMb(pid);
    // The highest resident memory is counted from now on (proc(5)).
    await writeFile(`/proc/${pid}/clear_refs`, '5');
    const bytes = await drawThrough(url, index + 10, { n: 4, size: '64x64' });
    if (bytes < 4 * IMAGE_MB * 1e6) throw new Error(`The answer has only ${bytes} bytes`);
    grown.push((await highestMb(pid)) - before);
  }
  await behave(server, { noteBytes: 0 });
  const what = `memory for 4 images of ${IMAGE_MB} MB in one answer`;
  return [atMost(what, median(grown), { limit: 2 * IMAGE_MB, unit: 'MB', digits: 0 })];
}

async function highestMb(pid: number): Promise<number> {
  return (Number(/VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024) / 1e6;
}

/** Ten clients queue 50 images, and half of the requests are left, again and again. */
async function measureQueue({ url, pid }: BenchService, server: string): Promise<readonly Row[]> {
  const memory: number[] = [];
  let left = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    await behave(server, { paused: true });
    const requests = Array.from({ length: QUEUED }, (_, index) => begin(url, round * QUEUED + index));
    const queued = async (): Promise<number> => lengthOf(await (await fetch(`${server}/queue`)).text());
    const until = async (count: number): Promise<unknown> =>
      waitUntil(async () => (await queued()) === count, {
        withinMs: 60_000,
        everyMs: 20,
        failure: async () => `${await queued()} are queued, and not ${count}`,
      });
    await until(QUEUED);
    for (const [index, request] of requests.entries()) if (index % 2 === 1) request.leave();
    await until(QUEUED / 2);
    await behave(server, { paused: false });
    await Promise.all(requests.filter((_, index) => index % 2 === 0).map(async ({ ended }) => ended));
    await until(0);
    left += await queued();
    memory.push(await residentMb(pid));
  }
  process.stdout.write(`  Memory after each round of ${QUEUED} images: ${memory.map((mb) => mb.toFixed(0)).join(' ')} MB\n`);
  const half = ROUNDS / 2;
  return [
    atMost('memory of later rounds, beside that of earlier ones', median(memory.slice(half)) / median(memory.slice(2, half)), {
      limit: 1.1,
      unit: '×',
    }),
    atMost('images left in the queue of the server', left, { limit: 0, unit: '', digits: 0 }),
  ];
}

function lengthOf(text: string): number {
  const queue: { readonly queue_running: readonly unknown[]; readonly queue_pending: readonly unknown[] } = JSON.parse(text);
  return queue.queue_running.length + queue.queue_pending.length;
}

function begin(url: string, seed: number): { readonly ended: Promise<unknown>; readonly leave: () => void } {
  const request = httpRequest(`${url}/v1/images/generations`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    agent: false,
  });
  const ended = new Promise<void>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => void response.resume().on('end', resolve));
  });
  // Those that leave end with an error that nobody waits for.
  ended.catch(() => undefined);
  request.end(JSON.stringify({ prompt: 'a fox', size: '64x64', seed, steps: 2, response_format: 'b64_json' }));
  return { ended, leave: () => void request.destroy() };
}
