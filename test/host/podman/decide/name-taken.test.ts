import { expect, test } from '@jest/globals';
import { nameTakenMessage } from '../../../../src/host/podman/decide/podman-container.ts';

test.each([
  [
    'of another program',
    undefined,
    'Another program has a container "svc-slot-a", a name that the slot needs; rename it, or remove it with "podman rm -f svc-slot-a"',
  ],
  ['of this service', '/etc/svc', 'The container "svc-slot-a" runs an earlier version of this slot; wait until it is removed'],
  [
    'of another service',
    '/srv/"x"',
    String.raw`The service with the configuration directory "/srv/\"x\"" has a container "svc-slot-a"; rename the slot, or if that service is no longer used, remove its container with "podman rm -f svc-slot-a"`,
  ],
])('a container %s', (_what, owner, expected) => {
  expect(nameTakenMessage('svc-slot-a', owner, '/etc/svc')).toBe(expected);
});

test('shortens a path that somebody else chose', () => {
  expect(nameTakenMessage('svc-slot-a', 'x'.repeat(100_000), '/etc/svc').length).toBeLessThan(500);
});
