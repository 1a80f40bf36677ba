/** The queue of the stand-in for ComfyUI: one workflow at a time, step by step, with a cache, history, interruption and errors as the real one has them. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { CheckedNode } from './validate-workflow.ts';
import type { SocketBehaviour } from './comfy-sockets.ts';
import { pngOf } from './png.ts';

/** What tests make it do. */
export interface Behaviour {
  /** Of one step of a sampler, in milliseconds. */
  readonly stepMs: number;
  /** The sampler makes no step. */
  readonly paused: boolean;
  /** Between the arrival of a workflow and its place in the queue. */
  readonly acceptMs: number;
  /** Bytes of a note in each image. */
  readonly noteBytes: number;
  /** What the sampler fails with. */
  readonly failure: 'none' | 'memory' | 'node' | 'load';
  /** What `/view` answers. */
  readonly view: 'image' | 'html' | 'nothing' | 'half' | 'absent';
  readonly socket: SocketBehaviour;
  /** What becomes of images that are sent. */
  readonly upload: 'taken' | 'failed';
  /** Whether a request to forget a job is answered. */
  readonly forgets: 'at once' | 'never';
  /** Previews are sent, as with `--preview-method`. */
  readonly previews: boolean;
}

export interface Job {
  readonly number: number;
  readonly id: string;
  readonly workflow: unknown;
  readonly nodes: ReadonlyMap<string, CheckedNode>;
  readonly outputs: readonly string[];
  readonly clientId: string;
}

interface Saved {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: 'output';
}

export interface QueueOptions {
  readonly outputDirectory: string;
  readonly withMetadata: boolean;
  readonly behaviour: () => Behaviour;
  /** Called with each message for the WebSocket of a client. */
  readonly tell: (clientId: string, type: string, data: object) => void;
  readonly preview: (clientId: string, step: number) => void;
  /** Called when a job has come or gone. */
  readonly onChange: () => void;
}

const SAMPLERS = new Set(['KSampler', 'SamplerCustom', 'SamplerCustomAdvanced']);

const MESSAGES = {
  none: '',
  memory: 'HIP out of memory. Tried to allocate 2.00 GiB.\n',
  node: 'The size of tensor a (4) must match b (5)\n',
  /** `comfy/sd.py`. */
  load: 'ERROR: Could not detect model type of: /srv/models/checkpoints/a/b.safetensors\n',
} as const;

class Interrupted extends Error {}

export function createComfyQueue({ outputDirectory, withMetadata, behaviour, tell, preview, onChange }: QueueOptions) {
  const pending: Job[] = [];
  const history = new Map<string, object>();
  /** By everything that a node depends on, as ComfyUI's cache. */
  const cache = new Map<string, readonly Saved[]>();
  const order: string[] = [];
  let running: Job | undefined;
  let interrupted = false;
  let stopped = false;

  async function work(): Promise<void> {
    for (;;) {
      const job = pending.shift();
      if (job === undefined || stopped) return;
      running = job;
      interrupted = false;
      history.set(job.id, await execute(job));
      running = undefined;
      // In this order: whoever is told that nothing is executed any more finds the job in history.
      onChange();
      tell(job.clientId, 'executing', { node: null, prompt_id: job.id });
    }
  }

  async function execute(job: Job): Promise<object> {
    const { id, number, workflow, nodes, outputs, clientId } = job;
    order.push(id);
    const messages: [string, object][] = [];
    const say = (type: string, data: object): void => {
      messages.push([type, { prompt_id: id, ...data, timestamp: Date.now() }]);
      tell(clientId, type, { prompt_id: id, ...data });
    };
    const entry = (status: string, saved: Record<string, object>): object => ({
      prompt: [number, id, workflow, { client_id: clientId }, outputs],
      outputs: saved,
      status: { status_str: status, completed: status === 'success', messages },
      meta: {},
    });
    say('execution_start', {});
    const key = JSON.stringify([...nodes], (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
    const known = cache.get(key);
    say('execution_cached', { nodes: known === undefined ? [] : [...nodes.keys()] });
    let at: readonly [string, CheckedNode] | undefined;
    try {
      const images = known ?? (await draw(job, (each) => (at = each)));
      cache.set(key, images);
      for (const node of outputs) tell(clientId, 'executed', { node, prompt_id: id, output: { images } });
      say('execution_success', {});
      return entry('success', Object.fromEntries(outputs.map((node) => [node, { images }])));
    } catch (error) {
      const where = { node_id: at?.[0] ?? '', node_type: at?.[1].className ?? '', executed: [] };
      if (error instanceof Interrupted) say('execution_interrupted', where);
      else {
        const memory = behaviour().failure === 'memory';
        say('execution_error', {
          ...where,
          exception_type: memory ? 'torch.OutOfMemoryError' : 'RuntimeError',
          exception_message: MESSAGES[behaviour().failure],
          traceback: ['  File "/opt/ComfyUI/execution.py", line 1\n'],
        });
      }
      return entry('error', {});
    }
  }

  async function draw(job: Job, enter: (node: readonly [string, CheckedNode]) => void): Promise<readonly Saved[]> {
    const { nodes, id, clientId } = job;
    const loader = [...nodes].find(([, { className }]) => className.includes('Loader'));
    if (behaviour().failure === 'load' && loader !== undefined) {
      enter(loader);
      throw new Error('load');
    }
    for (const [node, checked] of nodes) {
      enter([node, checked]);
      tell(clientId, 'executing', { node, prompt_id: id });
      if (!SAMPLERS.has(checked.className)) continue;
      const steps = stepsOf(nodes);
      for (let step = 1; step <= steps; step += 1) {
        await pause(behaviour().stepMs);
        while (behaviour().paused && !interrupted) await pause(5);
        if (interrupted) throw new Interrupted();
        if (behaviour().failure !== 'none') throw new Error(behaviour().failure);
        tell(clientId, 'progress', { value: step, max: steps, prompt_id: id, node });
        if (behaviour().previews) preview(clientId, step);
      }
    }
    return await save(job);
  }

  async function save({ nodes, workflow }: Job): Promise<readonly Saved[]> {
    const latent = inputsOf(nodes, /^Empty/);
    const scaled = inputsOf(nodes, /^ImageScale$/);
    const [width, height] = ['width', 'height'].map((name) => Number(latent[name] ?? scaled[name] ?? 64));
    const count = Number(latent['batch_size'] ?? inputsOf(nodes, /^RepeatLatentBatch$/)['amount'] ?? 1);
    const { filename_prefix: prefix = 'temp/ComfyUI_temp' } = z
      .object({ filename_prefix: z.string() })
      .partial()
      .parse(inputsOf(nodes, /^SaveImage$/));
    const subfolder = path.dirname(prefix) === '.' ? '' : path.dirname(prefix);
    const directory = path.join(outputDirectory, subfolder);
    if (path.relative(outputDirectory, directory).startsWith('..'))
      throw new Error('Saving image outside the output folder is not allowed');
    await mkdir(directory, { recursive: true });
    const base = path.basename(prefix);
    const used = (await readdir(directory)).filter((name) => name.startsWith(`${base}_`)).length;
    const shade = Number(BigInt(seedOf(nodes)) % 251n);
    const { noteBytes } = behaviour();
    const notes = {
      ...(withMetadata ? { prompt: JSON.stringify(workflow) } : {}),
      ...(noteBytes === 0 ? {} : { comment: 'x'.repeat(noteBytes) }),
    };
    const saved: Saved[] = [];
    for (let index = 0; index < count; index += 1) {
      const filename = `${base}_${String(used + index + 1).padStart(5, '0')}_.png`;
      // Sides are cut to multiples of eight without a word.
      const floor = (side = 0): number => Math.floor(side / 8) * 8;
      await writeFile(path.join(directory, filename), pngOf(floor(width), floor(height), shade + index, notes));
      saved.push({ filename, subfolder, type: 'output' });
    }
    return saved;
  }

  return {
    history,
    /** Ids in the order in which they were begun. */
    order,
    add(job: Job): void {
      pending.push(job);
      onChange();
      if (running === undefined && pending.length === 1) void work();
    },
    knows: (id: string): boolean => running?.id === id || history.has(id) || pending.some((job) => job.id === id),
    view: () => ({ running: running === undefined ? [] : [running], pending }),
    remove(ids: readonly unknown[]): void {
      for (const id of ids) {
        const index = pending.findIndex((job) => job.id === id);
        if (index !== -1) pending.splice(index, 1);
      }
    },
    clear: (): void => void pending.splice(0),
    /** Without an id: whatever runs. */
    interrupt(id: unknown): void {
      if (running !== undefined && (id === undefined || running.id === id)) interrupted = true;
    },
    stop(): void {
      stopped = true;
      interrupted = true;
      pending.splice(0);
    },
  };
}

function inputsOf(nodes: ReadonlyMap<string, CheckedNode>, className: RegExp): Readonly<Record<string, unknown>> {
  return nodes.values().find((node) => className.test(node.className))?.inputs ?? {};
}

function stepsOf(nodes: ReadonlyMap<string, CheckedNode>): number {
  return Number(nodes.values().find(({ inputs }) => 'steps' in inputs)?.inputs['steps'] ?? 1);
}

function seedOf(nodes: ReadonlyMap<string, CheckedNode>): bigint | number {
  const found = nodes.values().find(({ inputs }) => 'seed' in inputs || 'noise_seed' in inputs)?.inputs ?? {};
  const seed = found['seed'] ?? found['noise_seed'] ?? 0;
  return typeof seed === 'bigint' || typeof seed === 'number' ? seed : 0;
}
