/**
 * Run by the installer, as the user of the service: `node src/cli/install/write-first-slots.ts`. Writes the files of the built-in slots into the configuration directory,
 * unless it has any slots, and prints the names of those that are enabled. Settings come from the environment, as for `svcctl serve`.
 */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createHardwareProbe } from '../../host/hardware/hardware-probe.ts';
import { downloadBytes } from '../../models/catalogue/catalogue.ts';
import type { Provider, ProviderRegistry } from '../../providers/provider.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import type { Hardware } from '../../schema/status/hardware.ts';
import { PROVIDER_KIND_NAMES, type ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { parseSettings } from '../../schema/settings/settings.ts';
import { readCatalogue } from '../read-catalogue.ts';
import { firstSlots } from './decide/first-slots.ts';

const parsed = parseSettings(process.env);
if (parsed.ok) {
  const { SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir } = parsed.settings;
  for (const name of await writeFirstSlots(path.join(configDir, 'slots'), stateDir)) console.log(name);
} else {
  for (const problem of parsed.problems) console.error(problem);
  process.exitCode = 1;
}

async function writeFirstSlots(slotsDir: string, stateDir: string): Promise<readonly string[]> {
  await mkdir(slotsDir, { recursive: true });
  if ((await readdir(slotsDir)).some((name) => name.endsWith('.toml'))) return [];
  const hardware = await createHardwareProbe({ env: process.env }).read();
  const { catalogue } = await readCatalogue(process.env);
  const reasons = await judgeProviders(PROVIDERS, stateDir, hardware);
  const files = firstSlots({
    memoryBytes: hardware.memory?.totalBytes,
    whyNot: (kind) => reasons.get(kind),
    sizeBytes: (model) => {
      const entry = catalogue.get(model);
      return entry === undefined ? undefined : downloadBytes(entry);
    },
  });
  for (const { name, text } of files) await writeFile(path.join(slotsDir, `${name}.toml`), text, { flag: 'wx' });
  return files.filter(({ text }) => text.includes('enabled = true')).map(({ name }) => name);
}

/** Returns why this machine cannot run a provider, for each that it cannot. */
async function judgeProviders(providers: ProviderRegistry, stateDir: string, hardware: Hardware): Promise<Map<ProviderKind, string>> {
  const reasons = new Map<ProviderKind, string>();
  for (const kind of PROVIDER_KIND_NAMES) {
    const reason = await whyNot(providers[kind], stateDir, hardware);
    if (reason !== undefined) reasons.set(kind, reason);
  }
  return reasons;
}

async function whyNot(provider: Provider | undefined, stateDir: string, hardware: Hardware): Promise<string | undefined> {
  if (provider === undefined) return 'this version does not include its provider';
  const verdicts = provider.rankBackends(hardware);
  if (!verdicts.some(({ missing }) => missing === undefined)) return verdicts[0]?.missing ?? 'this machine has no device for it';
  const program = await provider.openProgram({ env: process.env, stateDir, onProgress: () => undefined }).describe();
  return program.ok ? undefined : `its program is missing: ${program.failure.message}`;
}
