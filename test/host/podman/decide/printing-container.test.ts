import { expect, test } from '@jest/globals';
import { printingContainer } from '../../../../src/host/podman/decide/podman-container.ts';

const id = `sha256:${'b'.repeat(64)}`;

test('a container that prints something has no network, no devices, no mounts of the host and no rights', () => {
  const container = printingContainer({ reference: 'r.example/npu@sha256:1' }, ['flm', 'list', '--json'], 'here');
  expect(container).toMatchObject({
    image: 'r.example/npu@sha256:1',
    entrypoint: ['flm'],
    command: ['list', '--json'],
    netns: { nsmode: 'none' },
    cap_drop: ['ALL'],
    no_new_privileges: true,
    read_only_filesystem: true,
  });
  expect(container.mounts.map(({ type }) => type)).toEqual(['tmpfs']);
  expect(container).not.toHaveProperty('devices');
  // Without the labels of workloads, nobody takes it for one; its own says who may remove it.
  expect(container.labels).toEqual({ 'inference.svc.dev/prints': 'here' });
  expect(container.timeout).toBeLessThan(300);
});

test('an image that was built here is the one with the pinned id', () => {
  expect(printingContainer({ reference: 'localhost/npu:v1', imageId: id }, ['flm'], 'here').image).toBe(id);
  expect(printingContainer({ reference: 'localhost/npu:v1' }, ['flm'], 'here').image).toBe('localhost/npu:v1');
});
