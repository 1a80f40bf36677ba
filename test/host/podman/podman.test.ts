/** The behaviour of the podman runtime beyond the contract that all runtimes share, with real podman. */
import { execFile } from 'node:child_process';
import { createServer, request } from 'node:http';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Runtime, Workload } from '../../../src/reconciler/ports.ts';
import { createPodmanRuntime } from '../../../src/host/podman/podman-runtime.ts';
import { podmanAnswers, findPodmanSocket } from '../../../src/host/podman/podman-api.ts';
import { describeWithPodman, PODMAN_SOCKET } from '../../support/require/require-podman.ts';
import { createPodmanWorld, podman } from './podman-world.ts';
import { eventually, freePort, TEST_SLOT, type RuntimeWorld } from '../../support/runtimes/runtime-world.ts';

const run = promisify(execFile);

describeWithPodman('The podman runtime', () => {
  let world: RuntimeWorld;
  let runtime: Runtime;
  let workload: Workload;
  const signal = () => AbortSignal.timeout(60_000);
  const observed = async (of: Runtime = runtime) => {
    const facts = await of.observe([], signal());
    if (!facts.ok) throw new Error(facts.failure.message);
    return facts.value.workloads.filter((each) => each.slot === workload.slot);
  };
  const failureOf = async (wanted: Workload) => {
    const applied = await runtime.apply(wanted, signal());
    return applied.ok ? applied : applied.failure;
  };

  beforeEach(async () => {
    world = await createPodmanWorld();
    runtime = world.runtime;
    workload = world.workload({ port: await freePort() });
  });
  afterEach(() => world.dispose());

  test('observes a workload with mounts, devices, a memory limit and a variable of the image as it was applied', async () => {
    const full: Workload = {
      ...workload,
      env: { FROM_IMAGE: 'yes', PATH: '/usr/bin:/bin:/usr/local/bin', HOME: '/tmp', TERM: 'dumb' },
      mounts: [
        { source: '/usr/share', target: '/models', readOnly: true },
        { source: '/var/tmp', target: '/extra', readOnly: false },
      ],
      devices: ['/dev/zero', '/dev/full'],
      memoryLimitBytes: 256 * 1024 * 1024,
    };
    expect(await runtime.apply(full, signal())).toMatchObject({ ok: true });
    const { argv, env, mounts, devices, port } = full;
    expect((await observed())[0]?.container).toMatchObject({ argv, env, mounts, devices, port });
    const [container] = JSON.parse(await podman('inspect', workload.name));
    expect(container.HostConfig).toMatchObject({ Memory: full.memoryLimitBytes, ReadonlyRootfs: true, Privileged: false });
    expect(container.EffectiveCaps ?? []).toEqual([]);
    expect(container.Mounts).toHaveLength(2);
  });

  test.each<[string, Partial<Workload>, object]>([
    [
      'a missing device',
      { devices: ['/dev/kfd-of-tests'] },
      { kind: 'retry', reason: 'DeviceMissing', message: expect.stringContaining('"/dev/kfd-of-tests"') },
    ],
    [
      'an unknown CDI name',
      { devices: ['example.com/gpu=all'] },
      { kind: 'retry', reason: 'DeviceMissing', message: expect.stringContaining('"example.com/gpu=all"') },
    ],
    [
      'an image that was not built',
      { image: { reference: 'localhost/none:v9' } },
      { kind: 'stalled', reason: 'ImageMissing', message: expect.stringContaining('svcctl toolbox build') },
    ],
    [
      'an image that was not pulled',
      { image: { reference: `127.0.0.1:1/none@sha256:${'0'.repeat(64)}` } },
      { kind: 'retry', reason: 'ImageMissing' },
    ],
    [
      'a missing directory of a mount',
      { mounts: [{ source: '/nowhere/models', target: '/models', readOnly: true }] },
      { reason: 'StartFailed', message: expect.stringContaining('"/nowhere/models"') },
    ],
    [
      'a program that the image does not have',
      { argv: ['no-such-program'] },
      { reason: 'StartFailed', message: expect.stringContaining('no-such-program') },
    ],
  ])('refuses %s and leaves nothing behind', async (_what, part, failure) => {
    expect(await failureOf({ ...workload, ...part })).toMatchObject(failure);
    expect(await podman('ps', '--all', '--quiet', '--filter', `name=^${workload.name}$`)).toBe('');
  });

  test('does not change another program’s container of the same name', async () => {
    const id = await podman('create', '--name', workload.name, 'localhost/svc-test-workload:v1');
    try {
      expect(await failureOf(workload)).toMatchObject({ reason: 'NameTaken', message: expect.stringContaining('podman rm') });
      expect(await podman('inspect', '--format', '{{.Id}}', workload.name)).toBe(id);
      expect(await observed()).toEqual([]);
    } finally {
      await podman('rm', '--force', id);
    }
  });

  test('neither observes nor changes the containers of another installation', async () => {
    const other = createPodmanRuntime({ socketPath: PODMAN_SOCKET, instance: `${TEST_SLOT}-other` });
    expect(await runtime.apply(workload, signal())).toMatchObject({ ok: true });
    expect(await observed(other)).toEqual([]);
    const message = expect.stringContaining('The service with the configuration directory "');
    expect(await other.apply(workload, signal())).toMatchObject({ ok: false, failure: { reason: 'NameTaken', message } });
    expect(await observed()).toMatchObject([{ phase: 'running' }]);
  });

  test('creates an exited container again if its port changes', async () => {
    expect(await runtime.apply(workload, signal())).toMatchObject({ ok: true });
    await podman('kill', workload.name);
    await eventually('it has exited', async () => (await observed()).find((each) => each.phase === 'exited'));
    const moved = { ...workload, port: { ...workload.port, host: await freePort() } };
    expect(await runtime.apply(moved, signal())).toMatchObject({ ok: true });
    expect(await observed()).toMatchObject([{ phase: 'running', container: { port: moved.port } }]);
  });

  test('has a read-only root and a writable /tmp, and joins the group that owns a device', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'svc-device-'));
    try {
      const device = join(dir, 'null');
      await run('mknod', [device, 'c', '1', '3']);
      await chown(device, 0, 44);
      await chmod(device, 0o660);
      expect(await runtime.apply({ ...workload, devices: [device] }, signal())).toMatchObject({ ok: true });
      await podman('exec', workload.name, 'touch', '/tmp/works');
      await expect(podman('exec', workload.name, 'touch', '/fails')).rejects.toThrow('Read-only');
      expect(await podman('exec', workload.name, 'id', '-G')).toBe('0 44');
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  test('sends podman no requests while nothing happens, and notices changes', async () => {
    const relay = await startCountingRelay();
    const watching = new AbortController();
    try {
      const counted = createPodmanRuntime({ socketPath: relay.socketPath, instance: TEST_SLOT });
      counted.changes(() => undefined, watching.signal);
      await counted.apply(workload, signal());
      // Events of the start itself are still on their way.
      await eventually('quiet', async () => {
        const before = relay.requests();
        for (let round = 0; round < 10; round += 1) {
          await observed(counted);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return relay.requests() === before ? true : undefined;
      });
      const before = relay.requests();
      await podman('kill', workload.name);
      await eventually('the exit', async () => (await observed(counted)).find((each) => each.phase === 'exited'));
      expect(relay.requests()).toBeGreaterThan(before);
    } finally {
      watching.abort();
      await relay.close();
    }
  });

  test('observes everything after the event stream broke and podman returned', async () => {
    const relay = await startCountingRelay();
    const watching = new AbortController();
    try {
      const cut = createPodmanRuntime({ socketPath: relay.socketPath, instance: TEST_SLOT });
      let wakes = 0;
      cut.changes(() => (wakes += 1), watching.signal);
      await cut.apply(workload, signal());
      await relay.close();
      await eventually('podman is away', async () => ((await cut.observe([], signal())).ok ? undefined : true));
      const away = await cut.observe([], signal());
      expect(away).toMatchObject({ ok: false, failure: { kind: 'retry', reason: 'RuntimeUnreachable' } });
      await podman('kill', workload.name);
      const before = wakes;
      await relay.open();
      await eventually('a wake', async () => (wakes > before ? true : undefined));
      await eventually('the exit', async () => (await observed(cut)).find((each) => each.phase === 'exited'));
    } finally {
      watching.abort();
      await relay.close();
    }
  });
});

describe('findPodmanSocket()', () => {
  test('returns a configured socket without checking it, the setting before CONTAINER_HOST', async () => {
    expect(await findPodmanSocket({ SVC_PODMAN_SOCKET: '/a.sock', CONTAINER_HOST: 'unix:///b.sock' })).toBe('/a.sock');
    expect(await findPodmanSocket({ CONTAINER_HOST: 'unix:///b.sock' })).toBe('/b.sock');
  });

  test('ignores sockets where nothing answers', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'svc-socket-'));
    expect(await findPodmanSocket({ XDG_RUNTIME_DIR: dir })).not.toBe(join(dir, 'podman/podman.sock'));
    expect(await podmanAnswers(join(dir, 'podman/podman.sock'))).toBe(false);
    await rm(dir, { recursive: true });
  });
});

/** Forwards requests to the real podman and counts them. Closing it cuts every connection, as if podman exited. */
async function startCountingRelay() {
  const dir = await mkdtemp(join(tmpdir(), 'svc-relay-'));
  const socketPath = join(dir, 'relay.sock');
  let requests = 0;
  const server = createServer((from, to) => {
    requests += 1;
    const onward = request({ socketPath: PODMAN_SOCKET, method: from.method, path: from.url, headers: from.headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 500, answer.headers);
      to.flushHeaders();
      answer.on('error', () => to.destroy()).pipe(to);
    });
    onward.on('error', () => to.destroy());
    to.on('close', () => onward.destroy());
    from.pipe(onward);
  });
  const open = () => new Promise<void>((resolve) => server.listen(socketPath, resolve));
  await open();
  return {
    socketPath,
    requests: () => requests,
    open,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
