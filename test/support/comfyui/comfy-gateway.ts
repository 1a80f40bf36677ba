/** The gateway in front of a stand-in for ComfyUI, with a cache for images: the provider of images as the service uses it, without a controller. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from '@jest/globals';
import { createImageCache } from '../../../src/files/image-cache.ts';
import { createModelReader } from '../../../src/models/read-model.ts';
import { image } from '../../../src/providers/image/image.ts';
import { imageFormat } from '../../../src/providers/image/image-format.ts';
import type { ModelFacts } from '../../../src/providers/provider.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { errorOf, post, type Reply } from '../../gateway/support/client.ts';
import { publish } from '../../gateway/support/board-fixture.ts';
import { startGateway, until, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';
import { startComfy, type Comfy } from './comfy-server.ts';
import { SHAPES, writeCheckpoint } from './checkpoints.ts';
import type { SavedWorkflow } from './user-workflows.ts';

export const GENERATIONS = '/v1/images/generations';
export const IMG = SlotName.parse('img');

type Family = 'sdxl-turbo' | 'sd-1.5' | 'flux-kontext' | 'qwen-image-edit';
type StandInOptions = Partial<Parameters<typeof startComfy>[0]>;

const FILES = {
  'sdxl-turbo': ['sd_xl_turbo_1.0_fp16.safetensors', SHAPES.sdxl],
  'sd-1.5': ['v1-5.safetensors', SHAPES['sd-1.5']],
  'flux-kontext': ['kontext.safetensors', SHAPES['flux-dev-split']],
  'qwen-image-edit': ['edit.safetensors', SHAPES['qwen-image']],
} as const;

export interface ComfyFixture {
  readonly dir: string;
  /** Where the files of models are. */
  readonly checkpoints: string;
  readonly gateway: GatewayFixture;
  /** That of the slot. */
  readonly model: ModelFacts;
  /** Sends a request for images. */
  draw(body?: object): Promise<Reply>;
  /** Reads an image from the cache. */
  cachedImage(url: string): Promise<Buffer>;
  /** Lets the slot have another server. */
  serve(port: number): void;
  startStandIn(options?: StandInOptions): Promise<Comfy>;
  /** Waits until nothing is in use, and closes everything. */
  close(): Promise<void>;
}

/** Puts a workflow and what it loads into the store, and reads it as the service does. */
async function saveWorkflow(dir: string, checkpoints: string, workflow: SavedWorkflow): Promise<ModelFacts> {
  await writeCheckpoint(path.join(checkpoints, 'sdxl-turbo/base.safetensors'), SHAPES.sdxl);
  await writeCheckpoint(path.join(checkpoints, 'portrait/glow.safetensors'), SHAPES.other);
  const id = ModelId.parse('models/checkpoints/portrait/portrait.workflow.json');
  await writeFile(path.join(dir, id), JSON.stringify(workflow));
  const read = await createModelReader(dir, [imageFormat]).read(id, id);
  if (read.kind !== 'present') throw new Error(read.kind === 'unusable' ? read.message : 'It is absent');
  return read.facts;
}

/** The gateway, with no server yet. */
async function startComfyGateway(
  family: Family = 'sdxl-turbo',
  settings: Readonly<Record<string, string>> = {},
  workflow?: SavedWorkflow,
): Promise<ComfyFixture> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-comfy-'));
  const checkpoints = path.join(dir, 'models/checkpoints');
  const [file, shapes] = FILES[family];
  const hostPath = path.join(checkpoints, family, file);
  await writeCheckpoint(hostPath, shapes);
  const parsed = parseSlot(IMG, { provider: 'image', model: { default: family } });
  if (!parsed.ok) throw new Error('There is no spec');
  const template = { id: ModelId.parse(family), hostPath, sizeBytes: 1, provider: 'image', contents: { family } } as const;
  const model = workflow === undefined ? template : await saveWorkflow(dir, checkpoints, workflow);
  const cache = createImageCache({ directory: path.join(dir, 'images'), limitBytes: 2 ** 30, maxAgeMs: 60_000, wallNow: Date.now });
  const gateway = await startGateway({
    settings: { SVC_STATE_DIR: dir, ...settings },
    provider: { infer: (request) => image.infer(request, ['image'], { spec: parsed.spec, model }) },
    async keepImage(next, status, origin) {
      if (status !== 200) return { ok: false, problem: `Look at the log: status ${status}` };
      const kept = await cache.keep(next);
      return kept.ok ? { ok: true, url: `${origin}/api/images/cache/${kept.id}.png` } : kept;
    },
  });
  const standIns: Comfy[] = [];
  return {
    dir,
    checkpoints,
    gateway,
    model,
    draw: (body = {}) => post(gateway.port, GENERATIONS, JSON.stringify({ prompt: 'a red fox', ...body })),
    async cachedImage(url) {
      const opened = await cache.open(/cache\/(.+)\.png$/.exec(url)?.[1] ?? '');
      if (opened === undefined) throw new Error(`"${url}" is not in the cache`);
      const pieces: Buffer[] = [];
      for await (const piece of opened.read(0, opened.sizeBytes - 1)) pieces.push(piece);
      return Buffer.concat(pieces);
    },
    serve: (port) => void publish(gateway.board, { name: 'img', capabilities: ['image'], targets: [{ workload: `w${port}`, port }] }),
    async startStandIn(options = {}) {
      const outputDirectory = path.join(dir, 'output');
      const standIn = await startComfy({ host: '127.0.0.1', port: 0, modelsDirectory: checkpoints, outputDirectory, ...options });
      standIns.push(standIn);
      return standIn;
    },
    async close() {
      await until(() => gateway.gateway.load().requests === 0);
      await gateway.close();
      for (const standIn of standIns) await standIn.close();
      expect(gateway.faults).toEqual([]);
      expect(gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0, spooledBytes: 0 });
      await rm(dir, { recursive: true });
    },
  };
}

export const failedWith = ({ status, text }: Pick<Reply, 'status' | 'text'>) => [status, errorOf(text).code, errorOf(text).message];

/** One gateway for each test, with a server from its start. */
export function createComfyWorld() {
  let fixture: ComfyFixture | undefined;
  const at = (): ComfyFixture => {
    if (fixture === undefined) throw new Error('Start the world first');
    return fixture;
  };
  return {
    at,
    /** The gateway alone. */
    async startFront(family?: Family): Promise<ComfyFixture> {
      fixture = await startComfyGateway(family);
      return fixture;
    },
    async start(family?: Family, options?: StandInOptions, settings?: Readonly<Record<string, string>>): Promise<Comfy> {
      fixture = await startComfyGateway(family, settings);
      const standIn = await fixture.startStandIn(options);
      fixture.serve(standIn.port);
      return standIn;
    },
    /** With a workflow of a user as the model. */
    async startWith(workflow: SavedWorkflow): Promise<Comfy> {
      fixture = await startComfyGateway('sdxl-turbo', {}, workflow);
      const standIn = await fixture.startStandIn();
      fixture.serve(standIn.port);
      return standIn;
    },
    draw: async (body?: object): Promise<Reply> => at().draw(body),
    async close(): Promise<void> {
      await fixture?.close();
      fixture = undefined;
    },
  };
}
