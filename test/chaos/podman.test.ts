/** What breaks in practice, with servers that are containers. Run it with `npm run test:chaos`. */
import { describeWithPodman } from '../support/require/require-podman.ts';
import { chaosCases } from './support/describe-chaos.ts';

describeWithPodman('On podman', () => chaosCases('podman'));
