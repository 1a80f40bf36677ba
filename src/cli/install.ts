/**
 * Run by the installer. `node src/cli/install.ts listen [FILE]` prints the address on which a service with this
 * environment file, or with none, would listen, such as `0.0.0.0:8080`; `report [FILE]` prints how a running service
 * is reached. `first-slots` writes the files of the built-in slots into an empty configuration directory and prints the
 * names of the enabled ones; `toolboxes` prints provider and backend of the image of each enabled slot.
 * Invalid settings are printed, and the exit code is 1.
 */
import { parseEnv } from 'node:util';
import { readRegularFile } from '../files/regular-file.ts';
import { parseSettings } from '../schema/settings/settings.ts';
import { authority } from './connect/service-options.ts';

// Each run of the installer asks for the address: what only the other actions need is not loaded for that.
const [, , action, file = ''] = process.argv;
const listenEnv = async () => (file === '' ? {} : parseEnv(await readRegularFile(file)));
const parsed = parseSettings(action === 'listen' || action === 'report' ? await listenEnv() : process.env);
if (!parsed.ok) {
  for (const problem of parsed.problems) console.error(problem);
  process.exitCode = 1;
} else if (action === 'listen') console.log(authority(parsed.settings.SVC_LISTEN));
else if (action === 'report') {
  const { judgeAccess, readAccess, reportText } = await import('./checks/access-checks.ts');
  const facts = await readAccess(parsed.settings);
  process.stdout.write(reportText(facts, judgeAccess(facts)));
} else {
  const { neededToolboxes, writeFirstSlots } = await import('./installed-slots.ts');
  for (const line of await (action === 'toolboxes' ? neededToolboxes : writeFirstSlots)(parsed.settings)) console.log(line);
}
