import { describeWithPodman } from '../support/require-podman.ts';
import { createPodmanWorld } from './podman-world.ts';
import { describeRuntimeContract } from './runtime-contract.ts';

describeWithPodman('With real podman', () => {
  describeRuntimeContract('The podman runtime', createPodmanWorld);
});
