/**
 * Run by the installer. `node src/cli/install.ts listen [FILE]` prints the address on which a service with this
 * environment file, or with none, would listen, such as `0.0.0.0:8080`; `report [FILE]` prints how a running service
 * is reached. `first-slots` writes the files of the built-in slots into an empty configuration directory and prints the
 * names of the enabled ones; `toolboxes` prints provider and backend of the image of each enabled slot.
 * Invalid settings are printed, and the exit code is 1.
 */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { readRegularFile } from '../files/regular-file.ts';
import { createHardwareProbe } from '../host/hardware/hardware-probe.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { downloadBytes } from '../models/catalogue/catalogue.ts';
import type { Provider } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/registry.ts';
import { withBackends } from '../reconciler/decide/facts/choose-backend.ts';
import type { Hardware } from '../schema/status/hardware.ts';
import { parseSettings, type Settings } from '../schema/settings/settings.ts';
import { judgeAccess, readAccess, reportText } from './checks/access-checks.ts';
import { authority } from './connect/service-options.ts';
import { firstSlots } from './decide/first-slots.ts';
import { readCatalogue } from './installation.ts';

const [, , action, file = ''] = process.argv;
const listenEnv = async () => (file === '' ? {} : parseEnv(await readRegularFile(file)));
const parsed = parseSettings(action === 'listen' || action === 'report' ? await listenEnv() : process.env);
if (!parsed.ok) {
  for (const problem of parsed.problems) console.error(problem);
  process.exitCode = 1;
} else if (action === 'listen') console.log(authority(parsed.settings.SVC_LISTEN));
else if (action === 'report') {
  const facts = await readAccess(parsed.settings);
  process.stdout.write(reportText(facts, judgeAccess(facts)));
} else for (const line of await (action === 'toolboxes' ? neededToolboxes : writeFirstSlots)(parsed.settings)) console.log(line);

/** One image serves several slots, so each pair is listed once. */
async function neededToolboxes({ SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir }: Settings): Promise<readonly string[]> {
  const log = { info: () => undefined, warn: () => undefined };
  const places = { directory: path.join(configDir, 'slots'), lastGoodDirectory: path.join(stateDir, 'slots') };
  const read = await createTomlDirectory({ ...places, quietPeriodMs: 0, log }).read(new AbortController().signal);
  if (!read.ok) throw new Error(read.failure.message);
  const slots = withBackends(read.value.slots, { providers: PROVIDERS }, await createHardwareProbe({ env: process.env }).read());
  return [...new Set([...slots.values()].flatMap(({ spec }) => (spec.enabled ? [`${spec.provider} ${spec.backend}`] : [])))];
}

async function writeFirstSlots({ SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir }: Settings): Promise<readonly string[]> {
  const slotsDir = path.join(configDir, 'slots');
  await mkdir(slotsDir, { recursive: true });
  if ((await readdir(slotsDir)).some((name) => name.endsWith('.toml'))) return [];
  const hardware = await createHardwareProbe({ env: process.env }).read();
  const { catalogue } = await readCatalogue(process.env);
  const reasons = new Map<string, string | undefined>();
  for (const provider of Object.values(PROVIDERS)) reasons.set(provider.kind, await whyNot(provider, stateDir, hardware));
  const files = firstSlots({
    memoryBytes: hardware.memory?.totalBytes,
    whyNot: (kind) => (reasons.has(kind) ? reasons.get(kind) : 'this version does not include its provider'),
    sizeBytes(model) {
      const entry = catalogue.get(model);
      return entry && downloadBytes(entry);
    },
  });
  for (const { name, text } of files) await writeFile(path.join(slotsDir, `${name}.toml`), text, { flag: 'wx' });
  return files.filter(({ text }) => text.includes('enabled = true')).map(({ name }) => name);
}

/** Returns why this machine cannot run the provider; undefined if it can. */
async function whyNot(provider: Provider, stateDir: string, hardware: Hardware): Promise<string | undefined> {
  const verdicts = provider.rankBackends(hardware);
  if (!verdicts.some(({ missing }) => missing === undefined)) return verdicts[0]?.missing ?? 'this machine has no device for it';
  const program = await provider.openProgram({ env: process.env, stateDir, onProgress: () => undefined }).describe();
  return program.ok ? undefined : `its program is missing: ${program.failure.message}`;
}
