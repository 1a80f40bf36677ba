/** Time from a saved slot file to a ready model, on podman with the real llama-server, compared with starting the same server by hand. */
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createPodmanApi, LIBPOD, findPodmanSocket, type PodmanApi } from '../src/host/podman/podman-api.ts';
import { writeDemoModels } from '../toolboxes/demo/demo-models.ts';
import { freePort } from '../test/support/free-port.ts';
import { atMost, median, type Row } from './measure.ts';
import { startBenchService, type BenchService } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const run = promisify(execFile);
const ROUNDS = 9;
/** A round takes about a second. */
const ROUND_MS = 60_000;
const IMAGE = 'localhost/svc-toolbox-gguf-cpu:v1';
const SLOT = `backend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--threads", "1"]\n`;

export async function measureEdit(): Promise<readonly Row[]> {
  const host = process.env['CONTAINER_HOST'];
  const why = host === undefined ? 'CONTAINER_HOST is not set' : (await hasImage()) ? undefined : `no image "${IMAGE}"`;
  if (host === undefined || why !== undefined) {
    const reason = `${why ?? ''}; run: eval "$(scripts/test-podman.sh)"`;
    return rowsOf(reason, reason);
  }
  const toolboxes = `[gguf.cpu]\nimage = "${IMAGE}"\n`;
  const service = await startBenchService({ SVC_RUNTIME: 'podman', CONTAINER_HOST: host }, { 'toolboxes.toml': toolboxes });
  const models = path.join(service.stateDir, 'models');
  await writeDemoModels(models);
  const socket = await findPodmanSocket({ CONTAINER_HOST: host });
  if (socket === undefined) throw new Error(`Set CONTAINER_HOST to a socket of this machine: it is "${host}"`);
  const api = createPodmanApi(socket);
  const issued: number[] = [];
  const byService: number[] = [];
  const byHand: number[] = [];
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      const seen = await oneRound(service);
      const hand = await startByHand(api, models);
      if (round === 0) continue;
      issued.push(seen.issuedMs);
      byService.push(seen.readyMs);
      byHand.push(hand);
    }
  } finally {
    await service.stop();
  }
  const ratio = median(byService) / median(byHand);
  process.stdout.write(
    `  saved to ready ${median(byService).toFixed(0)} ms, by hand ${median(byHand).toFixed(0)} ms, medians of ${ROUNDS}\n`,
  );
  return rowsOf(median(issued), ratio);
}

function rowsOf(issuedMs: number | string, ratio: number | string): readonly Row[] {
  return [
    atMost('file saved to workload start issued, median', issuedMs, { limit: 150, unit: 'ms', digits: 0 }),
    atMost('saved to ready, against the same llama-server by hand', ratio, { limit: 1.2, unit: '×' }),
  ];
}

function hasImage(): Promise<boolean> {
  return run('podman', ['image', 'exists', IMAGE]).then(
    () => true,
    () => false,
  );
}

/** Times are measured from outside: by podman's event for the start, and by the management API for the state. */
async function oneRound(service: BenchService): Promise<{ readonly issuedMs: number; readonly readyMs: number }> {
  const events = spawn('podman', ['events', '--filter', 'event=create', '--format', '{{.Time.UnixNano}}'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let createdAt = 0;
  events.stdout.on('data', (chunk: Buffer) => (createdAt ||= Number(chunk.toString().trim().split('\n')[0]) / 1e6));
  await pause(300);
  const savedAt = Date.now();
  await service.save('primary', SLOT);
  await waitUntil(async () => (await service.status()).some((slot) => slot.ready), {
    withinMs: ROUND_MS,
    everyMs: 5,
    failure: async () => `The slot did not become ready: ${await (await fetch(`${service.url}/api/slots/primary/explain`)).text()}`,
  });
  const readyMs = Date.now() - savedAt;
  await pause(300);
  events.kill('SIGTERM');
  await service.remove('primary');
  await waitUntil(() => isGone(service), { withinMs: ROUND_MS, everyMs: 20, failure: () => 'The slot was not removed' });
  return { issuedMs: createdAt - savedAt, readyMs };
}

async function isGone(service: BenchService): Promise<boolean> {
  const slots = await service.status();
  const { stdout } = await run('podman', ['ps', '--all', '--quiet', '--filter', 'label=inference.svc.dev/slot=primary']);
  return slots.length === 0 && stdout.trim() === '';
}

/** Through podman's API, as the service does it: starting podman's command line would take longer than some of what is measured. */
async function startByHand(api: PodmanApi, models: string): Promise<number> {
  const port = await freePort();
  const name = `svc-bench-${process.pid}`;
  const body = {
    name,
    image: IMAGE,
    entrypoint: ['llama-server'],
    command: ['-m', '/models/demo/demo-fox.gguf', '--host', '0.0.0.0', '--port', '8080', '--alias', 'demo-fox', '--threads', '1'],
    mounts: [{ type: 'bind', source: models, destination: '/models', options: ['ro', 'rbind'] }],
    portmappings: [{ host_ip: '127.0.0.1', host_port: port, container_port: 8080, protocol: 'tcp' }],
  };
  const startedAt = Date.now();
  await change(api, 'POST', 'create', body);
  try {
    await change(api, 'POST', `${name}/start`);
    await waitUntil(() => answersChat(port), {
      withinMs: ROUND_MS,
      everyMs: 5,
      failure: () => 'The server started by hand did not answer',
    });
    return Date.now() - startedAt;
  } finally {
    await change(api, 'DELETE', `${name}?force=true&timeout=0`);
  }
}

async function change(api: PodmanApi, method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<void> {
  const answer = await api.call(method, `${LIBPOD}/containers/${path}`, { signal: AbortSignal.timeout(ROUND_MS), body });
  if (!answer.ok) throw new Error(answer.failure.message);
  if (answer.value.status >= 400) throw new Error(`Podman refused "${method} ${path}": ${answer.value.error}`);
}

async function answersChat(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"messages":[{"role":"user","content":"Hello"}],"max_tokens":1}',
  }).then(
    (answer) => answer.ok,
    () => false,
  );
}
