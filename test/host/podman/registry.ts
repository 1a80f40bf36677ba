/** A real container registry for the tests, on loopback, and a podman with settings that allow plain HTTP to it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { podmanAnswers } from '../../../src/host/podman/podman-api.ts';
import { eventually, freePort } from '../../support/runtimes/runtime-world.ts';

export interface Registry {
  /** `127.0.0.1:<port>`. */
  readonly host: string;
  /** A port that is configured as a registry and never answers. */
  readonly deadHost: string;
  /** The same registry at a few MB/s, since podman reports progress once a second. */
  readonly slowHost: string;
  readonly socketPath: string;
  /** For files of the test; removed together with the registry. */
  readonly dir: string;
  dispose(): Promise<void>;
}

/** Path of the `docker-registry` program. */
const REGISTRY_PROGRAM = process.env['SVC_TEST_REGISTRY'] ?? '';

export async function startRegistry(): Promise<Registry> {
  if (REGISTRY_PROGRAM === '') throw new Error('Set SVC_TEST_REGISTRY: run eval "$(scripts/test-podman.sh)"');
  const dir = await mkdtemp(join(tmpdir(), 'svc-registry-'));
  const host = `127.0.0.1:${await freePort()}`;
  const deadHost = `127.0.0.1:${await freePort()}`;
  const slow = await startSlowLine(host);
  const slowHost = slow.host;
  const socketPath = join(dir, 'podman.sock');
  const storage = `storage: {filesystem: {rootdirectory: ${join(dir, 'data')}}, delete: {enabled: true}}`;
  await writeFile(join(dir, 'registry.yml'), `version: 0.1\nlog: {level: error}\n${storage}\nhttp: {addr: ${host}}\n`);
  const known = [host, deadHost, slowHost].map((location) => `[[registry]]\nlocation = "${location}"\ninsecure = true\n`);
  await writeFile(join(dir, 'registries.conf'), known.join(''));
  const registry = spawn(REGISTRY_PROGRAM, ['serve', join(dir, 'registry.yml')], { stdio: 'ignore' });
  // Where CONTAINER_HOST is set, podman would be a client of it.
  const { CONTAINER_HOST: _remote, ...local } = process.env;
  const service = spawn('podman', ['system', 'service', '--time=0', `unix://${socketPath}`], {
    stdio: 'ignore',
    env: { ...local, CONTAINERS_REGISTRIES_CONF: join(dir, 'registries.conf') },
  });
  const dispose = async (): Promise<void> => {
    const running = [registry, service].filter((child) => child.exitCode === null && child.signalCode === null);
    const ended = running.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    for (const child of running) child.kill('SIGKILL');
    await Promise.all(ended);
    slow.close();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await eventually('the registry answers', async () => ((await fetch(`http://${host}/v2/`)).ok ? true : undefined));
    await eventually('podman answers', async () => ((await podmanAnswers(socketPath)) ? true : undefined));
  } catch (error) {
    await dispose();
    throw error;
  }
  return { host, deadHost, slowHost, socketPath, dir, dispose };
}

const SLOW_CHUNK_BYTES = 64 * 1024;
const SLOW_PAUSE_MS = 20;

/** Forwards connections, with a pause after each part of the response. */
async function startSlowLine(target: string): Promise<{ readonly host: string; close(): void }> {
  const server = createServer((near) => {
    const far = connect(Number(target.split(':')[1]), '127.0.0.1');
    near.on('error', () => far.destroy()).pipe(far);
    far.on('error', () => near.destroy());
    void (async () => {
      for await (const chunk of far) {
        for (let from = 0; from < chunk.length; from += SLOW_CHUNK_BYTES) {
          near.write(chunk.subarray(from, from + SLOW_CHUNK_BYTES));
          if (chunk.length > SLOW_CHUNK_BYTES / 4) await sleep(SLOW_PAUSE_MS);
        }
      }
      near.end();
    })().catch(() => near.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('No port');
  return { host: `127.0.0.1:${address.port}`, close: () => void server.close() };
}
