/** What breaks in practice, with servers that are containers. Run it with `npm run test:long -- chaos`. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll } from '@jest/globals';
import { describeWithPodman, PODMAN, WORKLOAD_IMAGE } from '../support/require/require-podman.ts';
import { chaosCases } from './support/describe-chaos.ts';

const run = promisify(execFile);
const podman = async (...args: readonly string[]): Promise<unknown> => run('podman', [...PODMAN, ...args]);
const COMPANION = 'svc-chaos-companion';

describeWithPodman('On podman', () => {
  // With its last container, podman removes its network. What is sent to a dead server then leaves the machine, and whoever answers there answers the request.
  beforeAll(async () => {
    await podman('rm', '--force', '--ignore', '--time', '0', COMPANION);
    await podman('run', '--detach', '--name', COMPANION, '--entrypoint', '["sleep"]', WORKLOAD_IMAGE, '7200');
  }, 60_000);
  afterAll(async () => void (await podman('rm', '--force', '--ignore', '--time', '0', COMPANION)), 60_000);

  chaosCases('podman');
});
