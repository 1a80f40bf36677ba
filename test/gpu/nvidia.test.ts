/**
 * The service on a real NVIDIA GPU: what it sees of it, how well it estimates what a server takes of it, models that do not fit on it alone or
 * together, and prompts that are kept.
 * `npm run test:long -- gpu`. SVC_TEST_LLAMA_SERVER: directory of a `llama-server` with CUDA (default: the PATH).
 */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { writeLargeModel } from '../../bench/large-model.ts';
import { denseModel } from '../../bench/large-shapes.ts';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { describeWith } from '../support/require/describe-with.ts';
import { eventually } from '../support/eventually.ts';
import { chatText, isAnswering, servingProcess, startService, type Service, type SlotView } from '../support/service.ts';

const run = promisify(execFile);
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const LAYERS = 32;
/** A model as large as a small language model: 2 GB of weights, 64 KiB of cache a token. */
const MODEL = denseModel({
  layers: LAYERS,
  width: 2048,
  heads: 32,
  headsKv: 8,
  headLength: 64,
  feedForward: 8192,
  vocabulary: 32_000,
  context: 16_384,
  format: 'q8_0',
});
const CONTEXT = 8192;
/** The names of two such models, and of slots for them. */
const PAIR = ['one', 'two'] as const;
/** Keys and values. */
const TOKEN_BYTES = 2 * LAYERS * 8 * 64 * 2;
const TEXT = Array.from({ length: 130 }, (_, index) => `the dog runs ${index % 10}`).join(' ');

const query = async (...args: readonly string[]): Promise<readonly string[]> =>
  (await run('nvidia-smi', [...args, '--format=csv,noheader,nounits'])).stdout.trim().split('\n');
const hasGpu = await query('--query-gpu=name').then(
  ([name = '']) => name !== '',
  () => false,
);

describeWith({ isThere: hasGpu, word: 'gpu', what: 'has an NVIDIA GPU', reason: 'nvidia-smi reports no GPU' }, 'An NVIDIA GPU', () => {
  let service: Service;
  beforeAll(async () => {
    const PATH = [process.env['SVC_TEST_LLAMA_SERVER'], process.env['PATH']].filter((each) => each !== undefined).join(':');
    service = await startService({ runtime: 'process', environment: { PATH }, engine: 'installed' });
    await mkdir(path.join(service.modelsDir, 'large'));
    for (const name of PAIR) await writeLargeModel(path.join(service.modelsDir, `large/${name}.gguf`), MODEL);
  }, 180_000);
  afterEach(async () => {
    for (const name of ['primary', ...PAIR]) {
      await service.remove(name);
      await eventually(`"${name}" is gone`, async () => (await service.slot(name)) === undefined, 60_000);
    }
    await eventually('its servers have ended', async () => (await query('--query-compute-apps=pid'))[0] === '', 60_000);
  }, 90_000);
  afterAll(() => service?.dispose(), 60_000);

  const serve = async (model: string, context = CONTEXT): Promise<unknown> => {
    await service.save('primary', `[model]\ndefault = "${model}"\ncontext = ${context}\n`);
    // At its first start, a driver may have to compile the kernels of the server.
    return service.until('primary', model, (slot) => isAnswering(slot) && slot?.status.model === model, 120_000);
  };
  const explain = async (name = 'primary'): Promise<string> => {
    const { text }: { text: string } = JSON.parse(await (await fetch(`${service.url}/api/slots/${name}/explain`)).text());
    return text;
  };
  /** What the service counts for the slot on the device, as its explanation says. */
  const countedBytes = (text: string): number => {
    const [, amount = '', unit = ''] = /and ([\d.]+) ([GM])iB of "gpu0"/.exec(text) ?? [];
    return Number(amount) * (unit === 'G' ? GIB : MIB);
  };
  const timeline = async (name: string): Promise<readonly { kind: string; message: string }[]> => {
    const answer = await fetch(`${service.url}/api/slots/${name}/timeline?limit=1000`);
    const { entries }: { entries: { kind: string; message: string }[] } = JSON.parse(await answer.text());
    return entries;
  };
  const takenBytes = async (): Promise<number> => {
    const lines = await query('--query-compute-apps=pid,used_memory');
    return lines.reduce((sum, line) => sum + Number(line.split(',')[1] ?? 0) * MIB, 0);
  };
  /** A context whose cache takes that share of the device. */
  const contextOf = async (share: number): Promise<number> => {
    const total = Number((await query('--query-gpu=memory.total'))[0]) * MIB;
    return Math.floor((share * total) / TOKEN_BYTES / 256) * 256;
  };
  const ask = async (text: string, model = 'primary') => {
    const answer = await service.chat({ model, temperature: 0, max_tokens: 16, messages: [{ role: 'user', content: text }] });
    const read = await answer.text();
    const { choices, timings } = JSON.parse(read);
    if (choices === undefined) throw new Error(read);
    return { content: choices[0].message.content, computed: timings.prompt_n, cached: timings.cache_n, ms: timings.prompt_ms };
  };
  const say = (text: string): boolean => process.stderr.write(`FIGURE ${text}\n`);

  test('is seen with its memory and architecture, and its driver serves "cuda" only', async () => {
    const { devices } = JSON.parse(await (await fetch(`${service.url}/api/hardware`)).text());
    const [total, capability = ''] = (await query('--query-gpu=memory.total,compute_cap'))[0]?.split(', ') ?? [];
    say(JSON.stringify(devices));
    expect(devices).toContainEqual(
      expect.objectContaining({
        vendor: 'nvidia',
        driver: 'nvidia',
        architecture: `sm_${capability.replace('.', '')}`,
        memory_total_bytes: Number(total) * MIB,
      }),
    );
  });

  test('answers as the CPU does', async () => {
    await serve('demo-fox');
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    say(`small: taken ${await takenBytes()} B\n${await explain()}`);
    expect(await takenBytes()).toBeGreaterThan(0);
  }, 240_000);

  test('computes a slot that names no backend, and takes about as much memory as was estimated', async () => {
    await serve('large/one.gguf');
    const text = await explain();
    await ask('1 2 3');
    const taken = await takenBytes();
    const estimated = countedBytes(text);
    say(`taken ${taken} B, estimated ${estimated} B\n${text}`);
    expect(text).toContain('"cuda"');
    expect(taken / estimated).toBeGreaterThan(0.75);
    expect(taken / estimated).toBeLessThan(1.1);
  }, 240_000);

  test('computes what fits of a model that is too large for it; the CPU computes the rest', async () => {
    await serve('large/one.gguf', await contextOf(1.05));
    const answer = await ask('1 2 3');
    const text = await explain();
    const taken = await takenBytes();
    say(`split: taken ${taken} B, ${JSON.stringify(answer)}\n${text}`);
    const [, onHost] = /offload: the CPU computes (\d+) of 32 layers/.exec(text) ?? [];
    expect(Number(onHost)).toBeGreaterThan(0);
    expect(Number(onHost)).toBeLessThan(LAYERS);
    expect(taken).toBeGreaterThan(0.5 * GIB);
    const pid = await servingProcess(service);
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    // Nothing repairs it.
    expect(await servingProcess(service)).toBe(pid);
  }, 240_000);

  test('is given to two models in turn that do not fit on it together, and no request is lost', async () => {
    const context = await contextOf(0.55);
    for (const name of PAIR) {
      await service.save(name, `load = "on-demand"\n[model]\ndefault = "large/${name}.gguf"\ncontext = ${context}\n`);
      // A slot that no pass has seen yet is offline as well, and the gateway does not know it.
      const isAtRest = (slot: SlotView | undefined): boolean =>
        slot?.status.state === 'offline' && slot.status.conditions.every(({ reason }) => reason !== 'NotYetSeen');
      await service.until(name, 'offline', isAtRest);
    }
    for (const name of [...PAIR, ...PAIR]) {
      const answer = await ask('1 2 3', name);
      const taken = await takenBytes();
      const text = await explain(name);
      say(`turn of "${name}": taken ${taken} B, counted ${countedBytes(text)} B, ${JSON.stringify(answer)}\n${text}`);
      // The other one has left.
      expect(await query('--query-compute-apps=pid')).toEqual([String(await servingProcess(service, name))]);
      expect(taken).toBeGreaterThan(0.5 * Number((await query('--query-gpu=memory.total'))[0]) * MIB);
      expect(taken / countedBytes(text)).toBeGreaterThan(0.95);
      expect(taken / countedBytes(text)).toBeLessThan(1.05);
    }
    const answers = await Promise.all([...PAIR, ...PAIR, ...PAIR].map((name) => ask('4 5 6', name)));
    say(`at once: ${JSON.stringify(answers)}`);
    const looks = async () => ({
      served: await query('--query-compute-apps=pid'),
      timelines: await Promise.all(PAIR.map(timeline)),
    });
    // Requests keep the last one serving for no longer than its turn, and nobody waits any more.
    await eventually('one server is left', async () => (await query('--query-compute-apps=pid')).length === 1);
    const before = await looks();
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    const { served, timelines } = await looks();
    say(`timelines: ${JSON.stringify(timelines)}`);
    // Nothing repairs it, and nothing has failed.
    expect(served).toEqual(before.served);
    const actions = (lists: typeof timelines) => lists.flat().filter(({ kind }) => kind === 'action');
    expect(actions(timelines)).toEqual(actions(before.timelines));
    expect(timelines.flat().filter(({ kind }) => kind === 'failure')).toEqual([]);
  }, 400_000);

  test('gets its prompts back after a swap, with the same answer', async () => {
    await serve('demo-fox');
    const first = await ask(TEXT);
    await serve('demo-owl');
    await serve('demo-fox');
    const again = await ask(TEXT);
    say(`prompts: ${JSON.stringify({ first, again })}\n${await explain()}`);
    expect(again.content).toBe(first.content);
    expect(again.cached).toBeGreaterThan(0.99 * first.computed);
  }, 240_000);

  test('gets 4,000 tokens of a larger model back', async () => {
    const long = Array.from({ length: 4000 }, (_, index) => String(300 + (index % 3000))).join(' ');
    await serve('large/one.gguf');
    const first = await ask(long);
    await serve('large/two.gguf');
    await serve('large/one.gguf');
    const again = await ask(long);
    say(`large prompts: ${JSON.stringify({ first, again })}\n${await explain()}`);
    expect(again.cached).toBeGreaterThan(0.99 * first.computed);
  }, 240_000);
});
