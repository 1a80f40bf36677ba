import { expect, test } from '@jest/globals';
import { nameTakenMessage } from '../../../../src/host/podman/decide/podman-container.ts';

test.each([
  [
    'of another program',
    undefined,
    'Remove the container "svc-slot-a" with "podman rm -f svc-slot-a", or give it another name: the slot needs this name, and another program has taken it',
  ],
  ['of this service', '/etc/svc', 'Wait until the container "svc-slot-a" is removed: it runs an earlier version of this slot'],
  [
    'of another service',
    '/srv/"x"',
    String.raw`Give the slot another name, because the service with the configuration directory "/srv/\"x\"" has a container "svc-slot-a"; if that service is no longer used, remove its container with "podman rm -f svc-slot-a"`,
  ],
])('a container %s', (_what, owner, expected) => {
  expect(nameTakenMessage('svc-slot-a', owner, '/etc/svc')).toBe(expected);
});

test('shortens a path that somebody else chose', () => {
  expect(nameTakenMessage('svc-slot-a', 'x'.repeat(100_000), '/etc/svc').length).toBeLessThan(500);
});
