/** What the installer asks about slots: the files of the built-in ones, and the images that enabled ones need. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createHardwareProbe } from '../host/hardware/hardware-probe.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { downloadBytes } from '../models/catalogue/catalogue.ts';
import type { Provider } from '../providers/provider.ts';
import { PROVIDERS } from '../providers/registry.ts';
import { withBackends } from '../reconciler/decide/facts/choose-backend.ts';
import type { Hardware } from '../schema/status/hardware.ts';
import { isBuiltInKind } from '../schema/slot/provider-kinds.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { firstSlots } from './decide/first-slots.ts';
import { readCatalogue } from './installation.ts';

/** One image serves several slots, so each pair is listed once. Images of declared engines are pulled with the slot. */
export async function neededToolboxes({ SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir }: Settings): Promise<readonly string[]> {
  const log = { info: () => undefined, warn: () => undefined };
  const places = { directory: path.join(configDir, 'slots'), lastGoodDirectory: path.join(stateDir, 'slots') };
  const read = await createTomlDirectory({ ...places, quietPeriodMs: 0, log }).read(new AbortController().signal);
  if (!read.ok) throw new Error(read.failure.message);
  const slots = withBackends(read.value.slots, { providers: PROVIDERS }, await createHardwareProbe({ env: process.env }).read());
  const needed = [...slots.values()].filter(({ spec }) => spec.enabled && isBuiltInKind(spec.provider) && spec.remote === undefined);
  return [...new Set(needed.map(({ spec }) => `${spec.provider} ${spec.backend}`))];
}

/** Returns the names of the enabled slots; writes nothing where there are slots. */
export async function writeFirstSlots({ SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir }: Settings): Promise<readonly string[]> {
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
