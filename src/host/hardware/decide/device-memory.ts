/**
 * What processes use of the memory of GPUs, from the texts that say it: the kernel's account of each open device file (`/proc/<pid>/fdinfo`), the account of AMD's
 * compute driver, and `nvidia-smi`. Pure.
 */
import type { Device } from '../../../schema/status/hardware.ts';

/** One opened device file of a GPU. Files that were duplicated or inherited have the same client. */
export interface DrmClient {
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
export function parseKfdBytes(text: string): number {
  return /^\d{1,15}$/.test(text.trim()) ? Number(text) : 0;
}

/** https://docs.nvidia.com/deploy/nvidia-smi/index.html */
export const NVIDIA_PROCESSES = ['nvidia-smi', '--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits'] as const;

/** One line for each process on each GPU: `4321, 5462`, in MiB. Where the driver does not know (`[N/A]`), there is no entry. */
export function parseNvidiaProcesses(output: string): ReadonlyMap<number, number> {
  const bytes = new Map<number, number>();
  for (const line of output.split('\n')) {
    const [, pid, mib] = /^\s*(\d{1,10}),\s*(\d{1,9})\s*$/.exec(line) ?? [];
    if (pid !== undefined) bytes.set(Number(pid), (bytes.get(Number(pid)) ?? 0) + Number(mib) * 2 ** 20);
  }
  return bytes;
}
