/** Measures the GPU memory of processes. Never throws. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Device, Hardware } from '../../schema/status/hardware.ts';
import { createMachineTools, type AskTool, type RunTool } from './machine-tools.ts';

/** Returns the sum in bytes; undefined without a GPU, or if it is not reported. */
export type ReadDeviceMemory = (pids: readonly number[]) => Promise<number | undefined>;

interface DeviceMemoryOptions {
  readonly hardware: () => Promise<Hardware>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For tests: replaces `/`. */
  readonly root?: string;
  /** For tests: replaces processes. */
  readonly tool?: RunTool;
}

const KFD_PROCESSES = 'sys/class/kfd/kfd/proc';
const DEVICE_FILE = /^\/dev\/(?:dri|accel)\//;
/** A server has some dozens of open files. */
const MOST_FILES = 4096;

export function createDeviceMemory({ hardware, env, root = '/', tool }: DeviceMemoryOptions): ReadDeviceMemory {
  const ask = createMachineTools({ env, ...(tool === undefined ? {} : { run: tool }) });
  return async (pids) => {
    const { source, devices } = await hardware();
    const gpus = devices.filter(({ kind }) => kind === 'gpu');
    // Devices of a recording do not belong to processes here.
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
  // Older kernels omit allocations of the compute driver from device files; newer ones count them in both.
  return Math.max(
    bytesOfClients(clients.flat(), devices),
    compute.reduce((sum, bytes) => sum + bytes, 0),
  );
}

/** `directory`: of a process in `/proc`. */
export async function readClients(directory: string): Promise<readonly DrmClient[]> {
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
  const found = await Promise.all(names.map(async (name) => await readFile(join(directory, name), 'utf8').catch(() => '')));
  // In bytes, by GPU: drivers/gpu/drm/amd/amdkfd/kfd_process.c
  return found.reduce((sum, text) => sum + (/^\d{1,15}$/.test(text.trim()) ? Number(text) : 0), 0);
}

async function readNvidia(ask: AskTool, pids: readonly number[]): Promise<number> {
  const answer = await ask([NVIDIA_PROCESSES]);
  const bytes = parseNvidiaProcesses(answer?.output ?? '');
  return pids.reduce((sum, pid) => sum + (bytes.get(pid) ?? 0), 0);
}

/** An open device file. Duplicated and inherited files have the same client. */
interface DrmClient {
  readonly id: string;
  /** `0000:03:00.0`; undefined outside PCI. */
  readonly pciAddress: string | undefined;
  /** Resident bytes, by memory region: `vram`, `gtt`, `local0`, `system0`. */
  readonly bytes: ReadonlyMap<string, number>;
  /** Time that its engines have computed; undefined where the driver counts none. */
  readonly busyMs: number | undefined;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/**
 * Parses `/proc/<pid>/fdinfo`; undefined if it is no graphics device. `drm-memory-…` is the old key of amdgpu for
 * resident memory. https://docs.kernel.org/gpu/drm-usage-stats.html
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
  const busy = [...values].flatMap(([name, text]) => (ENGINE.test(name) ? (/^(\d{1,18}) ns$/.exec(text)?.[1] ?? []) : []));
  const busyMs = busy.length === 0 ? undefined : busy.reduce((sum, nanoseconds) => sum + Number(nanoseconds) / 1e6, 0);
  return { id, pciAddress: values.get('drm-pdev'), bytes, busyMs };
}

const ENGINE = /^drm-engine-(?!capacity-)/;

/** A number without a unit is bytes. */
function parseBytes(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,15})(?: ?([KMG]iB))?$/.exec(text) ?? [];
  return digits === '' ? undefined : Number(digits) * (UNITS[unit] ?? 1);
}

/** Dedicated memory: `vram` of amdgpu, `vram0` of xe, `local0` of i915. */
const OWN = /^(?:vram|local)\d*$/;
/** Evicted buffers, which are in use by the CPU only (amdgpu). */
const OUTSIDE = 'cpu';

/**
 * Counts each client once. Unified devices allocate host memory through the kernel, so no process shows it; for other
 * devices, only dedicated memory counts.
 */
export function bytesOfClients(clients: readonly DrmClient[], devices: readonly Device[]): number {
  const unique = new Map(clients.map((client) => [`${client.pciAddress ?? ''} ${client.id}`, client]));
  return [...unique.values()].reduce((sum, { pciAddress, bytes }) => {
    const names = [...bytes.keys()];
    const known = devices.find((device) => device.pciAddress !== undefined && device.pciAddress === pciAddress);
    const unified = known?.unified ?? !names.some((name) => OWN.test(name));
    const counted = names.filter((name) => (unified ? name !== OUTSIDE : OWN.test(name)));
    return sum + counted.reduce((all, name) => all + (bytes.get(name) ?? 0), 0);
  }, 0);
}

/** https://docs.nvidia.com/deploy/nvidia-smi/index.html */
const NVIDIA_PROCESSES = ['nvidia-smi', '--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits'] as const;

/** Lines such as `4321, 5462` in MiB, one per process and GPU. Skips unknown values (`[N/A]`). */
export function parseNvidiaProcesses(output: string): ReadonlyMap<number, number> {
  const bytes = new Map<number, number>();
  for (const line of output.split('\n')) {
    const [, pid, mib] = /^\s*(\d{1,10}),\s*(\d{1,9})\s*$/.exec(line) ?? [];
    if (pid !== undefined) bytes.set(Number(pid), (bytes.get(Number(pid)) ?? 0) + Number(mib) * 2 ** 20);
  }
  return bytes;
}
