/**
 * Creates the build context of the service image: `node scripts/stage-image.mjs DIRECTORY`. There is one folder for each layer of the image.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { buildDashboard } from './stage/build-dashboard.mjs';
import { NODE_PACKAGE, stageNode, stagePackages } from './stage/stage-packages.mjs';
import { stageService } from './stage/stage-service.mjs';

const INSTALLED_IN = 'opt/svc';

async function stage(to) {
  stageNode(join(to, 'node'));
  stagePackages(join(to, 'packages'));
  await stageService(join(to, 'service'));
  writeProgram(join(to, 'service'));
}

function writeProgram(to) {
  const program = join(to, 'bin/svcctl');
  mkdirSync(dirname(program));
  // An absolute path, because the base image may not have "env".
  writeFileSync(program, `#!/${INSTALLED_IN}/node_modules/${NODE_PACKAGE}/bin/node\nimport '../src/cli/svcctl.mjs';\n`);
  chmodSync(program, 0o755);
}

const [, , directory] = process.argv;
if (directory === undefined) throw new Error('Pass the directory to stage into');
await buildDashboard();
await stage(resolve(directory));
