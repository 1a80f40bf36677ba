/** Both directions: the recordings are what podman 4.3.1 reported for the container that was created from this workload. */
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Workload } from '../../../../src/reconciler/ports.ts';
import { containerSpec } from '../../../../src/host/podman/decide/podman-container.ts';
import { undeclared, observedWorkload, ContainerInspect } from '../../../../src/host/podman/decide/container-facts.ts';
import { Revision, SlotName } from '../../../../src/schema/words/names.ts';

const workload: Workload = {
  name: 'svc-slot-recorded',
  slot: SlotName.parse('recorded'),
  revision: Revision.parse('0123456789ab'),
  generation: 7,
  image: { reference: 'localhost/svc-test-workload:v1' },
  argv: ['tiny-server', '--host', '0.0.0.0', '--port', '8080', ''],
  env: { FROM_IMAGE: 'yes', GREETING: 'a b=c "d"', EMPTY: '', HOME: '/tmp' },
  mounts: [
    { source: '/var/tmp', target: '/models', readOnly: true },
    { source: '/usr/share', target: '/extra', readOnly: false },
  ],
  devices: ['/dev/zero'],
  port: { host: 9477, container: 8080 },
  memoryLimitBytes: 268_435_456,
};
const HOST = { instance: 'test', rootless: false, deviceGroups: [], ambient: [] };
const CONTEXT = {
  instance: 'test',
  imageEnv: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'FROM_IMAGE=yes'],
  rootless: false,
};

async function recorded(phase: string): Promise<ContainerInspect> {
  const file = new URL(`../recorded/podman-4.3.1-${phase}.json`, import.meta.url);
  return ContainerInspect.parse(JSON.parse(await readFile(file, 'utf8')));
}

describe('observedWorkload()', () => {
  let running: ContainerInspect;
  beforeAll(async () => {
    running = await recorded('running');
  });
  const facts = (container: ContainerInspect, context = CONTEXT) => observedWorkload(container, context)?.container;

  test.each(['created', 'running', 'exited'])('derives from a container that is %s the workload it was created from', async (phase) => {
    const found = observedWorkload(await recorded(phase), CONTEXT);
    expect(found).toMatchObject({ phase, name: workload.name, slot: workload.slot, revision: workload.revision, generation: 7 });
    expect(found?.container).toEqual({
      imageId: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      argv: workload.argv,
      env: workload.env,
      mounts: workload.mounts,
      devices: workload.devices,
      port: workload.port,
    });
    expect(found === undefined ? undefined : undeclared(found.container, workload)).toEqual([]);
  });

  test('has endpoints only while it runs, and times only if there are any', async () => {
    expect(observedWorkload(running, CONTEXT)).toMatchObject({
      endpoints: [{ host: '127.0.0.1', port: 9477 }],
      startedAt: expect.any(Number),
    });
    expect(observedWorkload(await recorded('created'), CONTEXT)).toMatchObject({ endpoints: [], startedAt: undefined });
    const exited = observedWorkload(await recorded('exited'), CONTEXT);
    expect(exited).toMatchObject({
      endpoints: [],
      exit: { code: 137, outOfMemory: false, message: expect.stringContaining('memory limit') },
    });
  });

  test.each<[string, Partial<ContainerInspect> | ((one: ContainerInspect) => Partial<ContainerInspect>), string]>([
    ['image', { Image: 'f'.repeat(64) }, 'imageId'],
    ['program', { Path: 'sleep' }, 'argv'],
    ['argument', { Args: ['--host', '0.0.0.0'] }, 'argv'],
    ['variable', (one) => ({ Config: { ...one.Config, Env: [...(one.Config.Env ?? []), 'ADDED=1'] } }), 'env'],
    [
      'lost variable',
      (one) => ({ Config: { ...one.Config, Env: (one.Config.Env ?? []).filter((line) => !line.startsWith('EMPTY')) } }),
      'env',
    ],
    [
      'PATH',
      (one) => ({ Config: { ...one.Config, Env: (one.Config.Env ?? []).map((line) => line.replace(/^PATH=.*/, 'PATH=/evil')) } }),
      'env',
    ],
    ['mount', (one) => ({ Mounts: one.Mounts.slice(1) }), 'mounts'],
    ['writable mount', (one) => ({ Mounts: one.Mounts.map((mount) => ({ ...mount, RW: true })) }), 'mounts'],
    ['volume', (one) => ({ Mounts: [...one.Mounts, { Type: 'volume', Name: 'v', Source: '/x', Destination: '/y', RW: true }] }), 'mounts'],
    ['device', (one) => ({ HostConfig: { ...one.HostConfig, Devices: [] } }), 'devices'],
    [
      'added device',
      (one) => ({ HostConfig: { ...one.HostConfig, Devices: [...(one.HostConfig.Devices ?? []), node('/dev/null')] } }),
      'devices',
    ],
    [
      'port',
      (one) => ({ HostConfig: { ...one.HostConfig, PortBindings: { '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '9478' }] } } }),
      'port',
    ],
    ['address', (one) => ({ HostConfig: { ...one.HostConfig, PortBindings: { '8080/tcp': [{ HostIp: '', HostPort: '9477' }] } } }), 'port'],
    ['unpublished port', (one) => ({ HostConfig: { ...one.HostConfig, PortBindings: null } }), 'port'],
  ])('shows a different %s', (_what, change, part) => {
    const altered = facts({ ...running, ...(typeof change === 'function' ? change(running) : change) });
    const differing = Object.entries(altered ?? {}).filter(([key, value]) => {
      const before = Object.entries(facts(running) ?? {}).find(([name]) => name === key)?.[1];
      return JSON.stringify(before) !== JSON.stringify(value);
    });
    expect(differing.map(([key]) => key)).toEqual([part]);
  });

  test('matches a directory of devices with its nodes, and accepts a CDI name', () => {
    const declared = { env: [], mounts: [], devices: ['/dev/dri', 'nvidia.com/gpu=all'] };
    const labels = { ...running.Config.Labels, 'inference.svc.dev/declared': JSON.stringify(declared) };
    const container = {
      ...running,
      Config: { ...running.Config, Labels: labels },
      HostConfig: { ...running.HostConfig, Devices: [node('/dev/dri/card0'), node('/dev/dri/renderD128')] },
    };
    expect(facts(container)?.devices).toEqual(['/dev/dri', 'nvidia.com/gpu=all']);
  });

  test('does not know the devices of rootless podman or the environment of an unknown image', () => {
    expect(facts(running, { ...CONTEXT, rootless: true })?.devices).toBeUndefined();
    expect(observedWorkload(running, { ...CONTEXT, imageEnv: undefined })?.container.env).toBeUndefined();
  });

  test('omits what the host adds to every container, once that is known', () => {
    const withMore = { ...running, Config: { ...running.Config, Env: [...(running.Config.Env ?? []), 'HOST_WIDE=1'] } };
    const found = facts(withMore);
    const tokens = found === undefined ? [] : undeclared(found, workload);
    expect(tokens).toEqual(['env:HOST_WIDE']);
    const labels = { ...withMore.Config.Labels, 'inference.svc.dev/ambient': JSON.stringify(tokens) };
    expect(facts({ ...withMore, Config: { ...withMore.Config, Labels: labels } })?.env).toEqual(workload.env);
  });

  test.each([{}, { 'inference.svc.dev/slot': '../x' }, { 'inference.svc.dev/slot': 'recorded', 'inference.svc.dev/instance': 'test' }])(
    'is undefined for labels of another installation: %j',
    (Labels) => {
      expect(observedWorkload({ ...running, Config: { ...running.Config, Labels } }, CONTEXT)).toBeUndefined();
    },
  );
});

describe('containerSpec()', () => {
  test('publishes on loopback only, drops every privilege and never restarts automatically', () => {
    expect(containerSpec(workload, HOST)).toMatchObject({
      portmappings: [{ host_ip: '127.0.0.1', host_port: 9477, container_port: 8080, protocol: 'tcp' }],
      cap_drop: ['ALL'],
      no_new_privileges: true,
      read_only_filesystem: true,
      restart_policy: 'no',
      resource_limits: { memory: { limit: 268_435_456 } },
    });
  });

  test('runs an image that was built here by its id, and a pulled one by its digest', () => {
    const id = `sha256:${'1'.repeat(64)}`;
    const image = (reference: string) => containerSpec({ ...workload, image: { reference, imageId: id } }, HOST)['image'];
    expect(image('localhost/a:v1')).toBe(id);
    expect(image(`quay.io/a@sha256:${'2'.repeat(64)}`)).toBe(`quay.io/a@sha256:${'2'.repeat(64)}`);
  });

  test('adds groups by id if there are devices, and keeps the user’s groups with rootless podman', () => {
    expect(containerSpec(workload, { ...HOST, deviceGroups: [44, 992] })).toMatchObject({ groups: ['44', '992'] });
    const rootless = containerSpec(workload, { ...HOST, rootless: true, deviceGroups: [44] });
    expect(rootless).toMatchObject({ annotations: { 'run.oci.keep_original_groups': '1' } });
    expect(rootless).not.toHaveProperty('groups');
  });

  test('raises the limit of pinned memory only for an NPU, with a number that JSON preserves', () => {
    expect(containerSpec(workload, HOST)).not.toHaveProperty('r_limits');
    const text = JSON.stringify(containerSpec({ ...workload, devices: ['/dev/accel/accel0'] }, HOST)['r_limits']);
    expect(text).toContain('{"type":"memlock","soft":9007199254740991,"hard":9007199254740991}');
    expect(text).toContain('"nofile"');
  });
});

function node(path: string) {
  return { PathOnHost: path, PathInContainer: path };
}
