/**
 * Creates the build context of the service image: `node scripts/stage-image.mjs DIRECTORY`. There is one folder for each layer of the image.
 */
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { buildDashboard } from './stage/build-dashboard.mjs';
import { NODE_PACKAGE, ROOT, stageNode, stagePackages } from './stage/stage-packages.mjs';

const INSTALLED_IN = 'opt/svc';
/** Copied in addition to the packages. */
const SERVICE = ['src', 'package.json', 'dashboard/dist', 'manifests/toolboxes.toml', 'toolboxes/demo', 'LICENSE'];

function stage(to) {
  stageNode(join(to, 'node'));
  stagePackages(join(to, 'packages'));
  stageService(join(to, 'service'));
}

function stageService(to) {
  for (const path of SERVICE) cpSync(join(ROOT, path), join(to, path), { recursive: true });
  const program = join(to, 'bin/svcctl');
  mkdirSync(dirname(program));
  // An absolute path, because the base image may not have "env".
  writeFileSync(program, `#!/${INSTALLED_IN}/node_modules/${NODE_PACKAGE}/bin/node\nimport '../src/cli/svcctl.mjs';\n`);
  chmodSync(program, 0o755);
}

const [, , directory] = process.argv;
if (directory === undefined) throw new Error('Pass the directory to stage into');
await buildDashboard();
stage(resolve(directory));
