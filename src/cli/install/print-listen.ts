/**
 * Run by the installer: `node src/cli/install/print-listen.ts FILE` prints the address on which a service with this environment file would listen, such as `0.0.0.0:8080`.
 * Prints what is wrong with its settings, and fails, if the service would not start with them.
 */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { parseSettings } from '../../schema/settings/settings.ts';

const parsed = parseSettings(parseEnv(readFileSync(process.argv[2] ?? '', 'utf8')));
if (parsed.ok) {
  const { host, port } = parsed.settings.SVC_LISTEN;
  console.log(`${host.includes(':') ? `[${host}]` : host}:${port}`);
} else {
  for (const problem of parsed.problems) console.error(problem);
  process.exitCode = 1;
}
