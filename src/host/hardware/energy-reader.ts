/** Reads sensors of energy and power. Never throws, and waits for no driver that hangs. */
import { open, readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OPEN_FLAGS } from '../../files/regular-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import type { ReadEnergy, SensorReading } from '../../schema/status/hardware.ts';
import {
  APU_LABEL,
  GPU_DRIVERS,
  GPU_FILES,
  NVIDIA_POWER,
  parseAmount,
  parseNvidiaPower,
  pickRaplZones,
  withoutDoubles,
} from './decide/energy-sensors.ts';
import { createToolRunner, type RunTool } from './machine-tools.ts';

interface EnergyReaderOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For tests: replaces `/`. */
  readonly root?: string;
  /** For tests: replaces processes. */
  readonly tool?: RunTool;
  /** For tests: monotonic milliseconds. */
  readonly now?: () => number;
  /** For tests: how long all files may take. */
  readonly timeoutMs?: number;
}

const POWERCAP = 'sys/class/powercap';
const HWMON = 'sys/class/hwmon';
/** A server with eight processors has some dozens. */
const MOST_ENTRIES = 256;
/** Files have a number or a word. */
const FILE_BYTES = 64;
const TIMEOUT_MS = 4000;
/** With the driver loaded, it takes a tenth of a second for each GPU. */
const NVIDIA_TIMEOUT_MS = 3000;
/** Its last answer is used until then; a program that is missing is looked for less often. */
const NVIDIA_FRESH_MS = 2500;
const NVIDIA_RETRY_MS = 60_000;

type Known = Pick<SensorReading, 'energyUj' | 'rangeUj' | 'powerUw' | 'problem'>;

export function createEnergyReader(options: EnergyReaderOptions): ReadEnergy {
  const { env, root = '/', tool = createToolRunner(env, NVIDIA_TIMEOUT_MS), timeoutMs = TIMEOUT_MS } = options;
  const now = options.now ?? (() => performance.now());
  const readNvidia = createNvidiaReader(tool, now);
  let running: Promise<readonly SensorReading[]> | undefined;

  async function readAll(nvidia: boolean): Promise<readonly SensorReading[]> {
    const parts = await Promise.all([readRapl(join(root, POWERCAP), now), readGpus(join(root, HWMON), now), nvidia ? readNvidia() : []]);
    return withoutDoubles(parts.flat());
  }

  return async ({ nvidia }) => {
    // A reading that hangs is the last one until it ends, so that threads of the system are not used up.
    running ??= readAll(nvidia).finally(() => void (running = undefined));
    return await Promise.race([running, sleep(timeoutMs, [], { ref: false })]);
  };
}

async function readRapl(directory: string, now: () => number): Promise<readonly SensorReading[]> {
  const zones = (await listDirectory(directory)).filter((name) => name.startsWith('intel-rapl'));
  const names = await Promise.all(zones.map(async (zone) => [zone, (await readText(join(directory, zone, 'name'))).text ?? ''] as const));
  return await Promise.all(
    pickRaplZones(new Map(names)).map(async ({ zone, source }) => {
      const range = await readText(join(directory, zone, 'max_energy_range_uj'));
      const energy = await readText(join(directory, zone, 'energy_uj'));
      const known = knownOf(energy, (energyUj) => ({ energyUj, rangeUj: parseAmount(range.text) }));
      return { source, device: 'host' as const, at: now(), ...known };
    }),
  );
}

async function readGpus(directory: string, now: () => number): Promise<readonly SensorReading[]> {
  const found = (await listDirectory(directory)).map(async (name): Promise<readonly SensorReading[]> => {
    const text = async (file: string): Promise<FileText> => await readText(join(directory, name, file));
    const driver = (await text('name')).text ?? '';
    if (!GPU_DRIVERS.has(driver)) return [];
    const address = await readlink(join(directory, name, 'device')).then(basename, () => name);
    const device = (await text('in1_label')).text === APU_LABEL ? 'host' : 'gpu';
    // Reading would wake it up.
    const isAsleep = (await text('device/power/runtime_status')).text === 'suspended';
    const known = isAsleep ? { problem: 'suspended' } : await readGpu(text);
    return [{ source: `${driver} ${address}`, device, at: now(), ...known }];
  });
  return (await Promise.all(found)).flat();
}

async function readGpu(text: (file: string) => Promise<FileText>): Promise<Known> {
  for (const file of GPU_FILES) {
    const found = await text(file);
    if (found.text !== undefined)
      return knownOf(found, (amount) => (file.startsWith('energy') ? { energyUj: amount } : { powerUw: amount }));
  }
  return { problem: 'not reported' };
}

function createNvidiaReader(run: RunTool, now: () => number): () => Promise<readonly SensorReading[]> {
  let last: { readonly at: number; readonly readings: readonly SensorReading[]; readonly isMissing: boolean } | undefined;
  return async () => {
    if (last !== undefined && now() - last.at < (last.isMissing ? NVIDIA_RETRY_MS : NVIDIA_FRESH_MS)) return last.readings;
    const output = await run(NVIDIA_POWER).catch(() => undefined);
    const failed: SensorReading = { source: 'nvidia-smi', device: 'gpu', at: now(), problem: 'cannot be run' };
    const readings = output === undefined ? [failed] : parseNvidiaPower(output, now());
    last = { at: now(), readings, isMissing: output === undefined };
    return readings;
  };
}

interface FileText {
  readonly text?: string;
  readonly problem?: string;
}

const knownOf = ({ text, problem }: FileText, known: (amount: number) => Known): Known => {
  const amount = parseAmount(text);
  return amount === undefined ? { problem: problem ?? 'not a number' } : known(amount);
};

async function readText(path: string): Promise<FileText> {
  try {
    await using handle = await open(path, OPEN_FLAGS);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(FILE_BYTES), 0, FILE_BYTES, 0);
    return { text: buffer.toString('latin1', 0, bytesRead).trim() };
  } catch (error) {
    const code = codeOf(error);
    return { problem: ['EACCES', 'EPERM'].includes(code) ? 'permission denied' : `cannot be read (${code})` };
  }
}

const listDirectory = async (path: string): Promise<readonly string[]> => (await readdir(path).catch(() => [])).slice(0, MOST_ENTRIES);
