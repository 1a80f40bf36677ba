/** Stages the service as a release contains it, without Node: `node scripts/stage-bundle.mjs DIRECTORY`. Tests and measurements run it. */
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildDashboard } from './stage/build-dashboard.mjs';
import { stagePackages } from './stage/stage-packages.mjs';
import { stageService } from './stage/stage-service.mjs';

const [, , directory] = process.argv;
if (directory === undefined) throw new Error('Pass the directory to stage into');
const to = resolve(directory);
await buildDashboard();
// Names of parts contain hashes: an earlier bundle would leave its own.
rmSync(join(to, 'src'), { recursive: true, force: true });
stagePackages(to);
await stageService(to, ['toolboxes/embedded']);
