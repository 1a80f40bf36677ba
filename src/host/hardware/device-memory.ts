/** Reads what processes use of the memory of the GPUs of this machine. Never throws. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Device, Hardware } from '../../schema/status/hardware.ts';
import { createMachineTools, type AskTool, type RunTool } from './machine-tools.ts';

/** Returns what these processes use together, in bytes; undefined where there is no GPU, or where nothing says it. */
export type ReadDeviceMemory = (pids: readonly number[]) => Promise<number | undefined>;

interface DeviceMemoryOptions {
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

/**
 * What processes use of the memory of GPUs, from the texts that say it: the kernel's account of each open device file (`/proc/<pid>/fdinfo`), the account of AMD's
 * compute driver, and `nvidia-smi`. Pure.
 */

/** One opened device file of a GPU. Files that were duplicated or inherited have the same client. */
interface DrmClient {
  readonly id: string;
  /** `0000:03:00.0`; undefined for a device that is not on PCI. */
  readonly pciAddress: string | undefined;
  /** Bytes that are resident, by the driver's name of the memory: `vram`, `gtt`, `local0`, `system0`. */
  readonly bytes: ReadonlyMap<string, number>;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/**
 * Undefined for a file that is no device of the kernel's graphics subsystem. `drm-memory-…` is how amdgpu named what is resident before the key was standardised.
 * https://docs.kernel.org/gpu/drm-usage-stats.html
 */
export function parseDrmClient(fdinfo: string): DrmClient | undefined {
  const values = new Map<string, string>();
  for (const line of fdinfo.split('\n')) {
    const match = /^(drm-[a-z0-9-]{1,60}):\s*(.{1,60}?)\s*$/.exec(line);
    if (match !== null) values.set(match[1] ?? '', match[2] ?? '');
  }
  const id = values.get('drm-client-id');
  if (id === undefined || !values.has('drm-driver')) return undefined;
  const bytes = new Map<string, number>();
  for (const key of ['drm-memory-', 'drm-resident-']) {
    for (const [name, text] of values) {
      const amount = name.startsWith(key) ? parseBytes(text) : undefined;
      if (amount !== undefined) bytes.set(name.slice(key.length), amount);
    }
  }
  return { id, pciAddress: values.get('drm-pdev'), bytes };
}

/** A number without a unit is bytes. */
function parseBytes(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,15})(?: ?([KMG]iB))?$/.exec(text) ?? [];
  return digits === '' ? undefined : Number(digits) * (UNITS[unit] ?? 1);
}

/** Memory of the device itself: `vram` of amdgpu, `vram0` of xe, `local0` of i915. */
const OWN = /^(?:vram|local)\d*$/;
/** Memory that the CPU uses and no device is given: buffers that were moved out (amdgpu). */
const OUTSIDE: ReadonlySet<string> = new Set(['cpu']);

/**
 * A device that computes in the memory of the host takes it through the kernel, so that no process seems to have it. With other devices, only their own memory
 * counts. Each client counts once.
 */
export function bytesOfClients(clients: readonly DrmClient[], devices: readonly Device[]): number {
  const unique = new Map(clients.map((client) => [`${client.pciAddress ?? ''} ${client.id}`, client]));
  return [...unique.values()].reduce((sum, { pciAddress, bytes }) => {
    const names = [...bytes.keys()];
    const known = devices.find((device) => device.pciAddress !== undefined && device.pciAddress === pciAddress);
    const unified = known?.unified ?? !names.some((name) => OWN.test(name));
    const counted = names.filter((name) => (unified ? !OUTSIDE.has(name) : OWN.test(name)));
    return sum + counted.reduce((all, name) => all + (bytes.get(name) ?? 0), 0);
  }, 0);
}

/** Of a file such as `/sys/class/kfd/kfd/proc/<pid>/vram_<gpu>`, in bytes. drivers/gpu/drm/amd/amdkfd/kfd_process.c */
function parseKfdBytes(text: string): number {
  return /^\d{1,15}$/.test(text.trim()) ? Number(text) : 0;
}

/** https://docs.nvidia.com/deploy/nvidia-smi/index.html */
const NVIDIA_PROCESSES = ['nvidia-smi', '--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits'] as const;

/** One line for each process on each GPU: `4321, 5462`, in MiB. Where the driver does not know (`[N/A]`), there is no entry. */
export function parseNvidiaProcesses(output: string): ReadonlyMap<number, number> {
  const bytes = new Map<number, number>();
  for (const line of output.split('\n')) {
    const [, pid, mib] = /^\s*(\d{1,10}),\s*(\d{1,9})\s*$/.exec(line) ?? [];
    if (pid !== undefined) bytes.set(Number(pid), (bytes.get(Number(pid)) ?? 0) + Number(mib) * 2 ** 20);
  }
  return bytes;
}
