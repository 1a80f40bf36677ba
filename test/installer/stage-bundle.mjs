/** `node stage-bundle.mjs RELEASE`: stages the service as the release does, without Node. */
import { buildDashboard } from '../../scripts/stage/build-dashboard.mjs';
import { stagePackages } from '../../scripts/stage/stage-packages.mjs';
import { stageService } from '../../scripts/stage/stage-service.mjs';

const [, , release] = process.argv;
await buildDashboard();
stagePackages(release);
await stageService(release, ['toolboxes/embedded']);
