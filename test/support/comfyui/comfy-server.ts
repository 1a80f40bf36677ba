/**
 * A stand-in for ComfyUI: it takes the same requests, checks workflows as the real one does, and answers in the same shapes, but its images have one colour. Tests set what it
 * does with `POST /stand-in`, which the real one does not have.
 */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import { z } from 'zod';
import { createComfySockets } from './comfy-sockets.ts';
import { createComfyQueue, type Behaviour } from './comfy-queue.ts';
import { describeNode, type ComfyVersion } from './object-info.ts';
import { validateWorkflow } from './validate-workflow.ts';

export interface ComfyOptions {
  readonly host: string;
  readonly port: number;
  /** Where it finds the files of models, at any depth. */
  readonly modelsDirectory: string;
  readonly outputDirectory: string;
  readonly withMetadata?: boolean;
  readonly behaviour?: Partial<Behaviour>;
  /** Ends the process, where it is one. */
  readonly crash?: () => void;
  /** Default: the oldest that is supported. */
  readonly version?: ComfyVersion;
}

export interface SeenComfyRequest {
  readonly method: string;
  readonly path: string;
}

export interface Comfy {
  readonly port: number;
  readonly seen: readonly SeenComfyRequest[];
  /** Every workflow that was sent, accepted or not, as its text. */
  readonly workflows: readonly string[];
  /** Images that were uploaded, by their names. */
  readonly uploads: ReadonlyMap<string, Buffer>;
  /** Whose interruption was asked for; undefined: of whatever runs. */
  readonly interrupts: readonly (string | undefined)[];
  /** Ids in the order in which they were begun. */
  readonly order: readonly string[];
  behave(behaviour: Partial<Behaviour>): void;
  /** Number of open WebSockets. */
  sockets(): number;
  queue(): { readonly running: readonly { readonly id: string }[]; readonly pending: readonly { readonly id: string }[] };
  close(): Promise<void>;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const DEFAULT: Behaviour = {
  stepMs: 1,
  paused: false,
  noteBytes: 0,
  acceptMs: 0,
  failure: 'none',
  view: 'image',
  socket: 'normal',
  previews: true,
  upload: 'taken',
  forgets: 'at once',
};

const Prompt = z.object({ prompt: z.unknown(), prompt_id: z.string().optional(), client_id: z.string().default('') });
const Ids = z.object({ delete: z.array(z.unknown()).default([]), clear: z.boolean().default(false) });
const Interrupt = z.object({ prompt_id: z.string().optional() });
const BehaviourPatch = z.object({
  crash: z.boolean().optional(),
  stepMs: z.number().optional(),
  paused: z.boolean().optional(),
  noteBytes: z.number().optional(),
  failure: z.enum(['none', 'memory', 'node', 'load']).optional(),
  view: z.enum(['image', 'html', 'nothing', 'half', 'absent']).optional(),
  socket: z.enum(['normal', 'refused', 'silent', 'broken', 'garbage']).optional(),
});

export async function startComfy(options: ComfyOptions): Promise<Comfy> {
  const { version = '0.3.64' } = options;
  let behaviour: Behaviour = { ...DEFAULT, ...options.behaviour };
  const seen: SeenComfyRequest[] = [];
  const workflows: string[] = [];
  const uploads = new Map<string, Buffer>();
  const interrupts: (string | undefined)[] = [];
  let number = 0;
  const server = createServer();
  const remaining = (): number => queue.view().running.length + queue.view().pending.length;
  const comfySockets = createComfySockets(server, () => behaviour.socket, remaining);
  const queue = createComfyQueue({
    outputDirectory: options.outputDirectory,
    withMetadata: options.withMetadata ?? false,
    behaviour: () => behaviour,
    tell: comfySockets.tell,
    preview: comfySockets.preview,
    onChange: comfySockets.tellStatus,
  });
  const models = (): readonly string[] => modelsIn(options.modelsDirectory);

  function prompt(text: string, res: ServerResponse): void {
    const asked = Prompt.safeParse(exactJson(text)).data;
    if (asked === undefined)
      return send(res, 400, { error: { type: 'no_prompt', message: 'No prompt provided', details: '' }, node_errors: {} });
    const { prompt_id: id = crypto.randomUUID(), client_id: clientId } = asked;
    if (!UUID.test(id))
      return send(res, 400, { error: { type: 'invalid_prompt_id', message: 'Invalid prompt id', details: id }, node_errors: {} });
    if (queue.knows(id))
      return send(res, 409, { error: { type: 'duplicate', message: 'Duplicate prompt id', details: id }, node_errors: {} });
    const checked = validateWorkflow(asked.prompt, models(), [...uploads.keys()], version);
    if (!checked.ok) return send(res, 400, checked.body);
    number += 1;
    queue.add({ number, id, workflow: JSON.parse(text).prompt, nodes: checked.nodes, outputs: checked.outputs, clientId });
    return send(res, 200, { prompt_id: id, number, node_errors: {} });
  }

  async function view(query: URLSearchParams, res: ServerResponse): Promise<void> {
    const filename = query.get('filename') ?? '';
    const subfolder = query.get('subfolder') ?? '';
    if (filename === '' || filename.includes('..') || filename.startsWith('/') || query.get('type') !== 'output') return send(res, 400);
    const file = path.join(options.outputDirectory, subfolder, path.basename(filename));
    if (path.relative(options.outputDirectory, file).startsWith('..')) return send(res, 403);
    const bytes = behaviour.view === 'absent' ? undefined : await readFile(file).catch(() => undefined);
    if (bytes === undefined) return send(res, 404);
    if (behaviour.view === 'html')
      return void res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Login</title>');
    if (behaviour.view === 'nothing') return void res.writeHead(200, { 'content-type': 'image/png' }).end();
    if (behaviour.view === 'half') return void res.writeHead(200, { 'content-type': 'image/png' }).end(bytes.subarray(0, bytes.length / 2));
    const [format] = query.get('preview')?.split(';') ?? [];
    if (format === 'jpeg') return void res.end(Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), bytes, Buffer.from('ffd9', 'hex')]));
    if (format === 'webp') return void res.end(Buffer.concat([Buffer.from('RIFF\0\0\0\0WEBP', 'latin1'), bytes]));
    res.writeHead(200, { 'content-type': 'image/png', 'content-length': bytes.length }).end(bytes);
  }

  async function upload(body: Buffer, type: string, res: ServerResponse): Promise<void> {
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const file = form.get('image');
    const subfolder = form.get('subfolder') ?? '';
    if (!(file instanceof File) || typeof subfolder !== 'string' || path.relative('/', path.join('/', subfolder)) !== subfolder)
      return send(res, 400);
    if (behaviour.upload !== 'taken') return send(res, 500);
    uploads.set(path.join(subfolder, file.name), Buffer.from(await file.arrayBuffer()));
    return send(res, 200, { name: file.name, subfolder, type: form.get('type') ?? 'input' });
  }

  function ofQueue(text: string, res: ServerResponse): void {
    const { delete: ids, clear } = Ids.parse(JSON.parse(text));
    if (clear) queue.clear();
    queue.remove(ids);
    send(res, 200);
  }

  function get(route: string, query: URLSearchParams, res: ServerResponse): unknown {
    const [, first, second] = route.split('/');
    if (route === '/system_stats') return send(res, 200, { system: { comfyui_version: version, python_version: '3.13' }, devices: [] });
    if (route === '/queue') {
      const items = (jobs: ReturnType<typeof queue.view>['pending']) =>
        jobs.map((job) => [job.number, job.id, job.workflow, { client_id: job.clientId }, job.outputs]);
      const { running, pending } = queue.view();
      return send(res, 200, { queue_running: items(running), queue_pending: items(pending) });
    }
    if (first === 'history' && second !== undefined) {
      const entry = queue.history.get(second);
      return send(res, 200, entry === undefined ? {} : { [second]: entry });
    }
    if (first === 'object_info' && second !== undefined) {
      return send(res, 200, describeNode(second, version, models()) ?? {});
    }
    return route === '/view' ? view(query, res) : send(res, 404);
  }

  function post(route: string, text: string, res: ServerResponse): unknown {
    if (route === '/prompt') {
      workflows.push(text);
      return setTimeout(() => prompt(text, res), behaviour.acceptMs);
    }
    if (route === '/queue') return ofQueue(text, res);
    if (route === '/history') {
      if (behaviour.forgets === 'never') return undefined;
      for (const id of Ids.parse(JSON.parse(text)).delete) queue.history.delete(String(id));
      return send(res, 200);
    }
    if (route === '/interrupt') {
      const { prompt_id: id } = Interrupt.parse(JSON.parse(text === '' ? '{}' : text));
      interrupts.push(id);
      queue.interrupt(id);
      return send(res, 200);
    }
    if (route !== '/stand-in') return send(res, 404);
    const { crash, ...patch } = BehaviourPatch.parse(JSON.parse(text));
    if (crash === true) options.crash?.();
    behaviour = { ...behaviour, ...Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) };
    return send(res, 200);
  }

  const sockets = new Set<Socket>();
  server.on('request', (req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://comfy');
    seen.push({ method: req.method ?? '', path: pathname });
    // Pages of other sites are refused.
    if (req.method === 'POST' && req.headers.origin !== undefined) return void send(res, 403);
    void readAll(req)
      .then((body) => {
        if (req.method === 'GET') return get(pathname, searchParams, res);
        if (pathname === '/upload/image') return upload(body, req.headers['content-type'] ?? '', res);
        return post(pathname, body.toString('utf8'), res);
      })
      .catch(() => send(res, 500));
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(options.port, options.host, resolve));
  const address = server.address();
  return {
    port: isAddress(address) ? address.port : options.port,
    seen,
    workflows,
    uploads,
    interrupts,
    order: queue.order,
    behave: (patch) => (behaviour = { ...behaviour, ...patch }),
    sockets: comfySockets.open,
    queue: queue.view,
    async close() {
      queue.stop();
      comfySockets.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function isAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}

function send(res: ServerResponse, status: number, body?: object): void {
  if (body === undefined) res.writeHead(status).end();
  else res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readAll(req: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of req) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** As Python reads it: integers of any size. */
function exactJson(text: string): unknown {
  return JSON.parse(text, (_key: string, value: unknown, { source = '' }: { readonly source?: string } = {}) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value,
  );
}

function modelsIn(directory: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.safetensors'));
  return files.map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name))).toSorted();
}
