/** The world of a single machine: slots are files, workloads are containers of podman or processes, one replica. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { Provider } from '../providers/provider.ts';
import type { PromptStore, Runtime } from '../reconciler/ports.ts';
import { createReadAhead } from '../models/read-ahead.ts';
import { createPromptStore } from '../models/prompts/prompt-store.ts';
import { messageOf } from '../platform/error-text.ts';
import { createProbeIo } from '../platform/probe-io.ts';
import { createStatusRecords } from '../files/status-files.ts';
import { createDeviceMemory, type ReadDeviceMemory } from '../host/hardware/device-memory.ts';
import { createEnergyReader } from '../host/hardware/energy-reader.ts';
import { createHardwareProbe, replayHardware, readRecording, type HardwareProbe } from '../host/hardware/hardware-probe.ts';
import { ok, type Result } from '../schema/words/failure.ts';
import type { Hardware } from '../schema/status/hardware.ts';
import { kindFacts } from '../schema/slot/provider-kinds.ts';
import { withRemotes } from '../remote/remote-runtime.ts';
import { createHostProbe } from '../host/host-probe.ts';
import { createProfileStore } from '../host/slots/profile-directory.ts';
import { createRevisionFiles } from '../host/slots/revision-files.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { createTomlEditor } from '../host/slots/toml-editor.ts';
import { createDesiredInputs, type OwnProgram, type ServiceOptions, type World } from './world.ts';
import { createHostModelStore, createServiceCatalogue } from './model-store.ts';
import { createOwnModels } from './own-models.ts';
import { openSource } from './open-source.ts';
import { withProgramOptions } from './program-options.ts';

/** `programs` are those that this runtime starts on the host itself; undefined where workloads run in images. */
export async function createHostWorld(
  options: ServiceOptions,
  createRuntime: (deviceMemory: ReadDeviceMemory) => Runtime,
  programs?: () => readonly OwnProgram[],
): Promise<Result<World>> {
  const { settings, log } = options;
  const { SVC_CONFIG_DIR: configDir, SVC_QUIET_PERIOD: quietPeriodMs } = settings;
  const hardware = await openHardware(options);
  if (!hardware.ok) return hardware;
  const directory = path.join(configDir, 'slots');
  const records = createStatusRecords(path.join(settings.SVC_STATE_DIR, 'status'), log);
  const history = openHistory(options);
  const slots = createTomlDirectory({
    directory,
    ...history.source,
    lastGoodDirectory: path.join(settings.SVC_STATE_DIR, 'slots'),
    records,
    quietPeriodMs,
    log,
  });
  const repository = await openSource(options, slots, history.world);
  const editor = repository.guard(createTomlEditor({ directory }));
  const profiles = createProfileStore({ directory: path.join(configDir, 'profiles'), slotsDirectory: directory, editor, quietPeriodMs });
  const readHardware = async (): Promise<Hardware> => withPrograms(await hardware.value.read(), programs?.());
  const host = createHostProbe({ hardware: readHardware });
  const catalogue = await createServiceCatalogue(options, { keeps: true });
  const inputs = await createDesiredInputs(options, slots, {
    catalogue,
    lastGoodFile: path.join(settings.SVC_STATE_DIR, 'toolboxes.json'),
    enginesFile: path.join(settings.SVC_STATE_DIR, 'engines.json'),
  });
  const asked = { providers: options.providers, programs: programs?.(), env: options.env, ...buildsOf(inputs) };
  const bare = createRuntime(createDeviceMemory({ hardware: hardware.value.read, env: options.env }));
  const runtime = withProgramOptions(withRemotes(bare), { ...asked, cacheDir: path.join(settings.SVC_STATE_DIR, 'program-help') });
  const own = createOwnModels({ ...asked, runtime, hardware: readHardware, now: () => performance.now() });
  const models = createHostModelStore(options, host, { ...catalogue, own });
  return ok({
    ...repository.hold(inputs),
    runtime,
    ...(programs === undefined ? {} : { programs }),
    ...optionalPartsOf(options),
    readAhead: createReadAhead({ providers: options.providers }),
    models,
    modelFiles: models,
    host,
    records,
    editor,
    profiles,
    ...repository.world,
    shareTraffic: (local) => local,
    leadership: { leads: () => true, changes: () => undefined },
    publishedView: (view) => view,
    resign: async () => undefined,
  });
}

/** Images and programs of a provider: those of all slots, and those that slots name. */
const buildsOf = ({ toolboxes, programsOf }: Awaited<ReturnType<typeof createDesiredInputs>>) => ({
  imagesOf: ({ kind }: Provider) => [
    ...kindFacts(kind).backends.flatMap((backend) => toolboxes().find(kind, backend) ?? []),
    ...programsOf(kind).flatMap(({ image }) => (image === undefined ? [] : [{ reference: image }])),
  ],
  pathsOf: ({ kind }: Provider) => programsOf(kind).flatMap(({ path: own }) => own ?? []),
});

/** What the source of slots tells the history, and the parts of the world that it consists of. */
function openHistory({ settings, log }: ServiceOptions) {
  const { SVC_STATE_DIR, SVC_REVISION_HISTORY: most } = settings;
  if (most === 0) return { source: {}, world: { sinks: [], stop: async () => undefined } };
  const revisions = createRevisionFiles({ directory: path.join(SVC_STATE_DIR, 'revisions'), most, log, wallNow: Date.now });
  return { source: { accepted: revisions.follow }, world: { revisions, sinks: [revisions], stop: revisions.flush } };
}

/** Those that settings turn off. A recording of hardware is one of another machine, whose energy is not known. */
const optionalPartsOf = (options: ServiceOptions): Pick<World, 'prompts' | 'readEnergy'> => ({
  ...promptStoreOf(options),
  ...(options.settings.SVC_HARDWARE_FILE === undefined ? { readEnergy: createEnergyReader({ env: options.env }) } : {}),
});

function promptStoreOf({ settings, providers, log }: ServiceOptions): { readonly prompts?: PromptStore } {
  const { SVC_STATE_DIR, SVC_PROMPT_CACHE_LIMIT: limitBytes } = settings;
  const root = path.join(SVC_STATE_DIR, 'prompts');
  if (limitBytes === 0) {
    void rm(root, { recursive: true, force: true }).catch((error: unknown) =>
      log.warn({}, `Kept prompts cannot be deleted: ${messageOf(error)}`),
    );
    return {};
  }
  return { prompts: createPromptStore({ root, limitBytes, providers, probeIo: createProbeIo(), log }) };
}

async function openHardware({ settings, env }: ServiceOptions): Promise<Result<HardwareProbe>> {
  const file = settings.SVC_HARDWARE_FILE;
  if (file === undefined) return ok(createHardwareProbe({ env }));
  const recording = await readRecording(file);
  return recording.ok ? ok(replayHardware(recording.value, file)) : recording;
}

/** Reports of programs count even where devices cannot be seen, but not for a recording of another machine. */
async function withPrograms(hardware: Hardware, programs: readonly OwnProgram[] | undefined): Promise<Hardware> {
  if (programs === undefined || hardware.source.kind === 'recording') return hardware;
  const devices = hardware.devices.map(({ id, name, driver, backends }) => [id, name, driver, backends].join(' ')).join('\n');
  const reports = await Promise.all(programs.map(async ({ kind, reportBackends }) => [kind, await reportBackends?.(devices)] as const));
  return { ...hardware, programs: Object.fromEntries(reports.flatMap(([kind, report]) => (report === undefined ? [] : [[kind, report]]))) };
}
