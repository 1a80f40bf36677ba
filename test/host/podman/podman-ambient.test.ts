/** A podman with settings that add something to every container: that is not drift, but later additions are. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createPodmanRuntime } from '../../../src/host/podman/podman-runtime.ts';
import { podmanAnswers } from '../../../src/host/podman/podman-api.ts';
import { describeWithPodman } from '../../support/require/require-podman.ts';
import { createPodmanWorld } from './podman-world.ts';
import { eventually, freePort, TEST_SLOT, type RuntimeWorld } from '../../support/runtimes/runtime-world.ts';

describeWithPodman('The podman runtime, where containers.conf adds variables, mounts and devices', () => {
  let dir: string;
  let socketPath: string;
  let world: RuntimeWorld;
  let end: () => Promise<void>;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-ambient-'));
    socketPath = join(dir, 'podman.sock');
    const usual = await readFile(process.env['CONTAINERS_CONF'] ?? '', 'utf8').catch(() => '[containers]\n');
    const added = 'env = ["HOST_WIDE=1"]\nvolumes = ["/usr/share:/host-share:ro"]\ndevices = ["/dev/full"]\n';
    await writeFile(join(dir, 'containers.conf'), usual.replace('[containers]\n', `[containers]\n${added}`));
    const { CONTAINER_HOST: _remote, ...local } = process.env;
    const env = { ...local, CONTAINERS_CONF: join(dir, 'containers.conf') };
    const service = spawn('podman', ['system', 'service', '--time=0', `unix://${socketPath}`], { stdio: 'ignore', env });
    end = async () => {
      service.kill('SIGKILL');
      await new Promise((resolve) => service.once('exit', resolve));
      await rm(dir, { recursive: true });
    };
    await eventually('podman answers', async () => ((await podmanAnswers(socketPath)) ? true : undefined));
    world = await createPodmanWorld();
  });
  afterAll(async () => {
    await world.dispose();
    await end();
  });

  test('shows no drift, also to the next instance', async () => {
    const signal = AbortSignal.timeout(20_000);
    const workload = world.workload({ port: await freePort() });
    expect(await createPodmanRuntime({ socketPath, instance: TEST_SLOT }).apply(workload, signal)).toMatchObject({ ok: true });
    const facts = await createPodmanRuntime({ socketPath, instance: TEST_SLOT }).observe([], signal);
    const found = facts.ok ? facts.value.workloads.find((each) => each.name === workload.name) : undefined;
    expect(found).toMatchObject({ phase: 'running', container: { env: workload.env, mounts: [], devices: [], argv: workload.argv } });
  });
});
