/**
 * Reads the hardware of this machine, or replays a recording. What hardly ever changes is looked up every half minute,
 * and vendor tools run in the background (`machine-tools.ts`). Never throws.
 */
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import { createReadStream } from 'node:fs';
import { readdir, readlink, access } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { HardwareRecordingSchema, type Hardware, type HardwareRecording } from '../../schema/status/hardware.ts';
import { AMDGPU_IDS_FILE, AMDGPU_MEMORY_FILES, IP_DISCOVERY, KFD_NODES, KFD_PROPERTIES, pickAmdgpuIds } from './decide/amd-gpu.ts';
import { SYSCTL, VM_STAT, XE_MEMORY_FILES, DRM_DIRECTORY } from './decide/other-gpus.ts';
import { CONTAINER_FILES, MEMINFO, BOARD_FILE, CPUINFO, KERNEL_FILE, hardwareOf, pickCpuinfo } from './decide/hardware-of.ts';
import { keepLines, parseNumber } from './decide/machine-view.ts';
import { NVIDIA_PROC, NVIDIA_SMI, WSL_DEVICE } from './decide/nvidia-gpu.ts';
import { PCI_DIRECTORY, PCI_IDS_FILES, PCI_VENDOR, pciKindOf, pickPciIds } from './decide/pci-devices.ts';
import { readRegularFile, UnsuitableFile } from '../../files/regular-file.ts';
import { succeeds } from '../../files/write-file.ts';
import { createMachineTools, type AskTool, type RunTool } from './machine-tools.ts';
import { messageOf } from '../../platform/error-text.ts';
import { readBeginning } from '../../platform/read-body.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { checkDocument, formatProblem } from '../../schema/slot/spec-problem.ts';

export interface HardwareProbe {
  read(): Promise<Hardware>;
  /** The input of `read`. */
  record(): Promise<HardwareRecording>;
}

export interface HardwareProbeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For tests: replaces `/`. */
  readonly root?: string;
  /** For tests: replaces processes. */
  readonly tool?: RunTool;
  readonly platform?: string;
}

/** Drivers and devices may appear while the service runs. */
const LAYOUT_FRESH_MS = 30_000;

export function createHardwareProbe({ env, root, tool, platform = process.platform }: HardwareProbeOptions): HardwareProbe {
  const machine: Machine = {
    files: createMachineFiles(root),
    tools: createMachineTools({ env, ...(tool === undefined ? {} : { run: tool }) }),
    platform,
    architecture: process.arch,
  };
  let known: { readonly at: number; readonly layout: Promise<Layout> } | undefined;
  const record = async (): Promise<HardwareRecording> => {
    const now = performance.now();
    if (known === undefined || now - known.at > LAYOUT_FRESH_MS) known = { at: now, layout: readLayout(machine) };
    return await readLevels(machine, await known.layout);
  };
  return { record, read: async () => hardwareOf(await record(), { kind: 'machine' }) };
}

/** Constant: memory use of a recording does not change. */
export function replayHardware(recording: HardwareRecording, file: string): HardwareProbe {
  const hardware = hardwareOf(recording, { kind: 'recording', file, about: recording.about });
  return { read: async () => hardware, record: async () => recording };
}

interface Machine {
  readonly files: MachineFiles;
  readonly tools: AskTool;
  /** Platform of this process, or of a test. */
  readonly platform: string;
  readonly architecture: string;
}

/** Everything but the memory in use, and the files that report it. */
interface Layout {
  readonly recording: HardwareRecording;
  readonly levelFiles: readonly string[];
  readonly nvidia: boolean;
}

interface Draft {
  readonly files: Record<string, string>;
  readonly links: Record<string, string>;
  readonly present: string[];
}

const PRESENT_FILES = ['/dev/kfd', WSL_DEVICE, ...CONTAINER_FILES];

async function readLayout(machine: Machine): Promise<Layout> {
  const draft: Draft = { files: {}, links: {}, present: [] };
  const linux = machine.platform === 'linux';
  const levelFiles = linux ? await readLinux(machine.files, draft) : [];
  const { platform, architecture } = machine;
  const about = `${cpus()[0]?.model.trim() || architecture}, ${availableParallelism()} CPUs`;
  return {
    recording: { format: 1, about, platform, architecture, ...draft, tools: {} },
    levelFiles: linux ? [MEMINFO, ...levelFiles] : [],
    nvidia: draft.present.includes(WSL_DEVICE) || Object.values(draft.links).includes('nvidia'),
  };
}

/** Adds the memory in use to the layout. */
async function readLevels(
  { files, tools: askTool, platform }: Machine,
  { recording, levelFiles, nvidia }: Layout,
): Promise<HardwareRecording> {
  const texts = await Promise.all(levelFiles.map(async (path) => [path, pickLevel(path, await files.text(path))] as const));
  const tools: Record<string, string> = {};
  const ask = async (...alternatives: Parameters<AskTool>[0]): Promise<void> => {
    const answer = await askTool(alternatives);
    if (answer !== undefined) tools[answer.command.join(' ')] = answer.output;
  };
  if (platform === 'darwin') await Promise.all([ask(SYSCTL), ask(VM_STAT)]);
  if (nvidia) await ask(NVIDIA_SMI.full, NVIDIA_SMI.basic);
  const known = texts.flatMap(([path, text]) => (text === undefined ? [] : [[path, text]]));
  return {
    ...recording,
    memory: { total_bytes: totalmem(), available_bytes: freemem() },
    files: { ...recording.files, ...Object.fromEntries(known) },
    tools,
  };
}

const pickLevel = (path: string, text: string | undefined): string | undefined =>
  path === MEMINFO && text !== undefined ? keepLines(text, /^Mem(?:Total|Free|Available):.*$/gm) : text;

/** Returns the files that report memory in use. */
async function readLinux(files: MachineFiles, draft: Draft): Promise<readonly string[]> {
  const keep = async (path: string, pick: (text: string) => string = (text) => text): Promise<void> => {
    const text = await files.text(path);
    if (text !== undefined) draft.files[path] = pick(text);
  };
  const present = await Promise.all(PRESENT_FILES.map(async (path) => ((await files.exists(path)) ? [path] : [])));
  draft.present.push(...present.flat());
  await Promise.all([keep(CPUINFO, pickCpuinfo), keep(BOARD_FILE), keep(KERNEL_FILE)]);
  // Containers see devices in sysfs that workloads may not get.
  if (CONTAINER_FILES.some((path) => draft.present.includes(path))) return [];
  const addresses = await files.names(PCI_DIRECTORY);
  const found = await Promise.all(addresses.map(async (address) => readPci({ files, draft, keep }, `${PCI_DIRECTORY}/${address}`)));
  const devices = found.flat();
  await Promise.all([
    ...(await files.names(KFD_NODES)).map(async (node) => keep(`${KFD_NODES}/${node}/properties`, pickProperties)),
    ...(await files.names(`${NVIDIA_PROC}/gpus`)).map(async (gpu) => keep(`${NVIDIA_PROC}/gpus/${gpu}/information`, pickModel)),
    readRenderNodes(files, draft),
    keepNames(keep, draft, devices),
  ]);
  return devices.flatMap(({ levelFiles }) => levelFiles);
}

interface Reading {
  readonly files: MachineFiles;
  readonly draft: Draft;
  readonly keep: (path: string, pick?: (text: string) => string) => Promise<void>;
}

interface FoundPci {
  readonly vendor: number;
  readonly device: number;
  readonly revision: number | undefined;
  readonly levelFiles: readonly string[];
}

async function readPci({ files, draft, keep }: Reading, directory: string): Promise<readonly FoundPci[]> {
  const number = async (file: string): Promise<number | undefined> => parseNumber((await files.text(`${directory}/${file}`))?.trim());
  const [classCode, vendor, device] = [await number('class'), await number('vendor'), await number('device')];
  if (vendor === undefined || device === undefined || pciKindOf(classCode, vendor, device) === undefined) return [];
  const amd = vendor === PCI_VENDOR.amd;
  const kept = [
    'class',
    'vendor',
    'device',
    'revision',
    'vbnv',
    'fw_version',
    ...(amd ? ['product_name', ...['major', 'minor', 'revision'].map((file) => `${IP_DISCOVERY}/${file}`)] : []),
  ];
  await Promise.all(kept.map(async (file) => keep(`${directory}/${file}`)));
  const driver = await files.link(`${directory}/driver`);
  if (driver !== undefined) draft.links[`${directory}/driver`] = driver;
  for (const kind of ['drm', 'accel']) {
    const nodes = (await files.names(`${directory}/${kind}`)).filter((name) => /^(?:renderD|accel)[0-9]+$/.test(name));
    draft.present.push(...nodes.map((name) => `${directory}/${kind}/${name}`));
  }
  const tiles = (await files.names(directory)).filter((name) => /^tile[0-9]+$/.test(name));
  await Promise.all(tiles.flatMap((tile) => XE_MEMORY_FILES.map(async (file) => keep(`${directory}/${tile}/${file}`))));
  const levelFiles = amd ? AMDGPU_MEMORY_FILES.map((file) => `${directory}/${file}`) : [];
  return [{ vendor, device, revision: await number('revision'), levelFiles }];
}

async function readRenderNodes(files: MachineFiles, draft: Draft): Promise<void> {
  const nodes = (await files.names(DRM_DIRECTORY)).filter((name) => /^renderD[0-9]+$/.test(name));
  await Promise.all(
    nodes.map(async (node) => {
      const driver = await files.link(`${DRM_DIRECTORY}/${node}/device/driver`);
      if (driver !== undefined) draft.links[`${DRM_DIRECTORY}/${node}/device/driver`] = driver;
    }),
  );
}

/** Keeps only lines about devices of this machine. */
async function keepNames(keep: Reading['keep'], draft: Draft, devices: readonly FoundPci[]): Promise<void> {
  if (devices.length === 0) return;
  for (const file of PCI_IDS_FILES) {
    if (PCI_IDS_FILES.some((each) => Object.hasOwn(draft.files, each))) break;
    await keep(file, (text) => pickPciIds(text, devices));
  }
  const amd = devices.flatMap(({ vendor, device, revision }) =>
    vendor === PCI_VENDOR.amd && revision !== undefined ? [{ device, revision }] : [],
  );
  if (amd.length === 0) return;
  await keep(AMDGPU_IDS_FILE, (text) => amd.map(({ device, revision }) => pickAmdgpuIds(text, device, revision)).join(''));
}

const pickProperties = (text: string): string => keepLines(text, new RegExp(`^(?:${KFD_PROPERTIES.join('|')}) .*$`, 'gm'));

/** Drops the UUID of the GPU. */
const pickModel = (text: string): string => `${/^Model:.*$/m.exec(text)?.[0] ?? ''}\n`;

const MAX_RECORDING_BYTES = 8 * 1024 * 1024;

/** Fails for a file that is missing, too large or no recording. */
export async function readRecording(file: string): Promise<Result<HardwareRecording>> {
  const refuse = (message: string): Result<never> => fail('stalled', 'SettingUnusable', message);
  let document: unknown;
  try {
    document = JSON.parse(await readRegularFile(file, { mostBytes: MAX_RECORDING_BYTES }));
  } catch (error) {
    if (error instanceof UnsuitableFile) return refuse(`The recording ${error.message}`);
    return refuse(`The recording "${file}" cannot be read (${messageOf(error)}); write one with "svcctl hardware record > FILE"`);
  }
  const parsed = checkDocument(HardwareRecordingSchema, document, 'camelCase');
  if (parsed.ok) return ok(parsed.value);
  return refuse(
    `The recording "${file}" is not valid: ${parsed.problems.map((problem) => formatProblem(problem, 'camelCase')).join('; ')}`,
  );
}

type MachineFiles = ReturnType<typeof createMachineFiles>;

/** The largest file, the list of PCI ids, has 1.4 MB. */
const MAX_FILE_BYTES = 2 * 1024 * 1024;
const MAX_NAMES = 4096;

/** Reads sysfs and `/proc`. Never throws: unreadable files count as missing. `root` replaces `/`, for tests. */
function createMachineFiles(root = '/') {
  return {
    /** The first 2 MiB. */
    text: async (path: string): Promise<string | undefined> =>
      await readBeginning(createReadStream(join(root, path)), MAX_FILE_BYTES).then(String, () => undefined),
    /** Base name of the target. */
    link: (path: string) => readlink(join(root, path)).then(basename, () => undefined),
    exists: (path: string) => succeeds(access(join(root, path))),
    names: async (path: string): Promise<readonly string[]> => (await readdir(join(root, path)).catch(() => [])).slice(0, MAX_NAMES),
  };
}
