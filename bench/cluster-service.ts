/** The controller as a process of its own beside the cluster, as a pod would run it, and what it tells of itself. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../test/support/free-port.ts';
import type { PodAccount } from './cluster-account.ts';
import { accepts, pause } from './service-process.ts';

export interface ClusterService {
  readonly pid: number;
  readonly url: string;
  /** Milliseconds from the spawn until the port took a connection. */
  readonly listeningMs: number;
  /** Milliseconds from the spawn until the board had so many slots. */
  untilBoard(slots: number): Promise<number>;
  /** Requests to the API server so far, by `verb resource`. */
  requests(): Promise<ReadonlyMap<string, number>>;
  /** A new lease is nobody's for some seconds. */
  untilLeads(): Promise<void>;
  stop(): Promise<void>;
}

const TOOLBOXES = '[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\n';
const START_MS = 60_000;
/** To look inside: `SVC_BENCH_NODE_FLAGS="--cpu-prof --cpu-prof-dir=/tmp/profiles"`. */
const NODE_FLAGS = (process.env['SVC_BENCH_NODE_FLAGS'] ?? '').split(' ').filter((flag) => flag !== '');

/** `replica`: its name in the cluster. */
export async function startClusterService(account: PodAccount, namespace: string, replica = 'bench'): Promise<ClusterService> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  await writeFile(path.join(dir, 'toolboxes.toml'), TOOLBOXES);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const begun = performance.now();
  const [program, ...args] = [...account.runner, process.execPath, ...NODE_FLAGS, 'src/cli/svcctl.ts', 'serve'];
  const child = spawn(program, args, {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: dir,
      ...account.env,
      SVC_RUNTIME: 'kube',
      SVC_NAMESPACE: namespace,
      SVC_POD_NAME: replica,
      SVC_IMAGE: 'localhost/svc:bench',
      SVC_LISTEN: `127.0.0.1:${port}`,
      SVC_STATE_DIR: path.join(dir, 'state'),
      SVC_CONFIG_DIR: dir,
      SVC_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const deadline = begun + START_MS;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error('The controller did not start');
    await pause(2);
  }
  const listeningMs = performance.now() - begun;
  const metrics = async (): Promise<string> => (await fetch(`${url}/api/metrics`)).text();
  return {
    pid: child.pid ?? 0,
    url,
    listeningMs,
    async untilBoard(slots) {
      for (;;) {
        const body: { slots: unknown[] } = JSON.parse(await (await fetch(`${url}/api/status`)).text());
        if (body.slots.length >= slots) return performance.now() - begun;
        if (performance.now() > deadline) throw new Error(`The board has ${body.slots.length} slots instead of ${slots}`);
        await pause(2);
      }
    },
    async requests() {
      const lines = (await metrics()).matchAll(/^svc_kube_requests_total\{verb="(.*?)",resource="(.*?)"\} (\d+)$/gm);
      return new Map([...lines].map(([, verb, resource, count]) => [`${verb} ${resource}`, Number(count)]));
    },
    async untilLeads() {
      while (!/^svc_leads 1$/m.test(await metrics())) {
        if (performance.now() > deadline) throw new Error('The controller does not lead');
        await pause(50);
      }
    },
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      await rm(dir, { recursive: true, force: true });
    },
  };
}
