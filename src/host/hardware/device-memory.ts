/** Reads what processes use of the memory of the GPUs of this machine. Never throws. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Device, Hardware } from '../../schema/status/hardware.ts';
import {
  bytesOfClients,
  NVIDIA_PROCESSES,
  parseDrmClient,
  parseKfdBytes,
  parseNvidiaProcesses,
  type DrmClient,
} from './decide/device-memory.ts';
import { createMachineTools, type AskTool, type RunTool } from './machine-tools.ts';

/** Returns what these processes use together, in bytes; undefined where there is no GPU, or where nothing says it. */
export type ReadDeviceMemory = (pids: readonly number[]) => Promise<number | undefined>;

export interface DeviceMemoryOptions {
  readonly hardware: () => Promise<Hardware>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For tests: takes the place of `/`. */
  readonly root?: string;
  /** For tests: takes the place of processes. */
  readonly tool?: RunTool;
}

const KFD_PROCESSES = 'sys/class/kfd/kfd/proc';
const DEVICE_FILE = /^\/dev\/(?:dri|accel)\//;
/** A server has some dozens of open files. */
const MOST_FILES = 4096;

export function createDeviceMemory({ hardware, env, root = '/', tool }: DeviceMemoryOptions): ReadDeviceMemory {
  const ask = createMachineTools({ env, now: () => performance.now(), ...(tool === undefined ? {} : { run: tool }) });
  return async (pids) => {
    const { source, devices } = await hardware();
    const gpus = devices.filter(({ kind }) => kind === 'gpu');
    // The devices of a recording are not those of the processes here.
    if (source.kind === 'recording' || gpus.length === 0) return undefined;
    const parts = await Promise.all([
      readKernel(root, pids, devices),
      gpus.some(({ vendor }) => vendor === 'nvidia') ? readNvidia(ask, pids) : 0,
    ]);
    const bytes = parts[0] + parts[1];
    return bytes === 0 ? undefined : bytes;
  };
}

async function readKernel(root: string, pids: readonly number[], devices: readonly Device[]): Promise<number> {
  const clients = await Promise.all(pids.map(async (pid) => readClients(join(root, 'proc', String(pid)))));
  const compute = await Promise.all(pids.map(async (pid) => readKfd(join(root, KFD_PROCESSES, String(pid)))));
  // Older kernels leave out of the account of a device file what the compute driver allocated; newer ones count it in both.
  return Math.max(
    bytesOfClients(clients.flat(), devices),
    compute.reduce((sum, bytes) => sum + bytes, 0),
  );
}

async function readClients(directory: string): Promise<readonly DrmClient[]> {
  const names = (await readdir(join(directory, 'fd')).catch(() => [])).slice(0, MOST_FILES);
  const found = names.map(async (name): Promise<readonly DrmClient[]> => {
    const target = await readlink(join(directory, 'fd', name)).catch(() => '');
    if (!DEVICE_FILE.test(target)) return [];
    const client = parseDrmClient(await readFile(join(directory, 'fdinfo', name), 'utf8').catch(() => ''));
    return client === undefined ? [] : [client];
  });
  return (await Promise.all(found)).flat();
}

async function readKfd(directory: string): Promise<number> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.startsWith('vram_'));
  const found = await Promise.all(names.map(async (name) => parseKfdBytes(await readFile(join(directory, name), 'utf8').catch(() => ''))));
  return found.reduce((sum, bytes) => sum + bytes, 0);
}

async function readNvidia(ask: AskTool, pids: readonly number[]): Promise<number> {
  const answer = await ask([NVIDIA_PROCESSES]);
  const bytes = parseNvidiaProcesses(answer?.output ?? '');
  return pids.reduce((sum, pid) => sum + (bytes.get(pid) ?? 0), 0);
}
