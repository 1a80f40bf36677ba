import { describeWithPodman } from '../../support/require/require-podman.ts';
import { createPodmanWorld } from './podman-world.ts';
import { describeRuntimeContract } from '../../support/runtimes/runtime-contract.ts';

describeWithPodman('With real podman', () => {
  describeRuntimeContract('The podman runtime', createPodmanWorld);
});
