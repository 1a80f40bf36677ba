import { expect, test } from '@jest/globals';
import { mountsOf, WORKFLOWS_MOUNT } from '../../../src/models/decide/workflows-mount.ts';

test.each([
  [undefined, []],
  ['', []],
  ['workflows', [WORKFLOWS_MOUNT]],
])('with the ConfigMap %j, what is mounted is %j', (configMap, mounts) => {
  expect(mountsOf(configMap)).toEqual(mounts);
});
