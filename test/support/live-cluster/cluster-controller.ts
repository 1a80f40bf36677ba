/** The real service as a child process outside the cluster, which tests can kill and start again. It reaches the cluster through a kubeconfig and pods by their addresses. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCounts, type Counts } from './controller-counts.ts';
import { freePort } from '../free-port.ts';
import { KUBECONFIG } from '../require/require-cluster.ts';
import { ownEnvironment, pause } from '../service.ts';

export interface ClusterController {
  readonly identity: string;
  readonly url: string;
  /** The output of all its processes; the end of it if it is long. */
  output(): string;
  /** Throws if the controller does not answer. */
  counts(): Promise<Counts>;
  chat(body?: object, signal?: AbortSignal): Promise<Response>;
  /** Resolves when the controller answers. */
  start(): Promise<void>;
  /** Resolves when the process has exited. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Kills the process, and removes its files. */
  dispose(): Promise<void>;
}

export interface ClusterControllerOptions {
  readonly namespace: string;
  /** Stands for the name of its pod. */
  readonly identity: string;
  /** The text of a kubeconfig. Default: the file in KUBECONFIG. */
  readonly kubeconfig?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const STARTED_WITHIN_MS = 30_000;
/** It lets requests finish for ten seconds. */
const ENDED_WITHIN_MS = 20_000;
const KEPT_OUTPUT = 200_000;
const TOOLBOXES = '[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\n';

/** Does not start it. */
export async function createClusterController(options: ClusterControllerOptions): Promise<ClusterController> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-cluster-'));
  await mkdir(join(directory, 'config'));
  await writeFile(join(directory, 'config/toolboxes.toml'), TOOLBOXES);
  const kubeconfig = options.kubeconfig === undefined ? KUBECONFIG : join(directory, 'kubeconfig');
  if (options.kubeconfig !== undefined) await writeFile(kubeconfig, options.kubeconfig, { mode: 0o600 });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const environment = {
    ...ownEnvironment(),
    KUBECONFIG: kubeconfig,
    SVC_RUNTIME: 'kube',
    SVC_NAMESPACE: options.namespace,
    SVC_POD_NAME: options.identity,
    SVC_IMAGE: process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test',
    SVC_LISTEN: `127.0.0.1:${port}`,
    SVC_CONFIG_DIR: join(directory, 'config'),
    SVC_STATE_DIR: join(directory, 'state'),
    ...options.environment,
  };
  let child: ChildProcess | undefined;
  let text = '';

  const append = (chunk: Buffer): void => {
    text = `${text}${chunk.toString()}`.slice(-KEPT_OUTPUT);
  };

  async function kill(signal: NodeJS.Signals): Promise<void> {
    const running = child;
    child = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill(signal);
    let late = false;
    const limit = setTimeout(() => {
      late = true;
      running.kill('SIGKILL');
    }, ENDED_WITHIN_MS);
    await ended;
    clearTimeout(limit);
    if (late) throw new Error(`"${options.identity}" did not exit:\n${text.slice(-4000)}`);
  }

  return {
    identity: options.identity,
    url,
    output: () => text,
    counts: async () => readCounts(await (await fetch(`${url}/api/metrics`, { signal: AbortSignal.timeout(5000) })).text()),
    chat: async (body = {}, signal) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
        ...(signal === undefined ? {} : { signal }),
      }),
    async start() {
      const started = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve'], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
      child = started;
      started.stdout?.on('data', append);
      started.stderr?.on('data', append);
      const deadline = Date.now() + STARTED_WITHIN_MS;
      while (!(await answers(`${url}/api/health/system`))) {
        if (started.exitCode !== null || Date.now() > deadline)
          throw new Error(`"${options.identity}" did not start:\n${text.slice(-4000)}`);
        await pause(25);
      }
    },
    kill,
    async dispose() {
      await kill('SIGKILL');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(5000) }).then(
    (answer) => answer.ok,
    () => false,
  );
}
