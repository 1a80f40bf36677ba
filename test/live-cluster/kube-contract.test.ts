import { jest } from '@jest/globals';
import { describeRuntimeContract } from '../support/runtimes/runtime-contract.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { createKubeWorld } from './kube-world.ts';

/** A pod takes seconds to start and to end, and several times as long on a busy machine. */
jest.setTimeout(180_000);

describeWithCluster('With a real cluster', () => {
  describeRuntimeContract('The kube runtime', async () => await createKubeWorld('contract'));
});
