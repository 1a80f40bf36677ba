/** Reads which devices this machine has: only names of files are looked up, and nothing is opened or started. */
import { access, readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { DeviceFacts } from '../schema/device-facts.ts';

export interface DeviceProbeOptions {
  /** Contains `dev`, `sys`, `proc` and `run`; for tests. */
  readonly root?: string;
}

/** Device files of NVIDIA appear with their first use; the driver shows earlier. `dxg` is that of WSL. */
const NVIDIA_PATHS = ['dev/nvidiactl', 'dev/nvidia0', 'dev/dxg', 'proc/driver/nvidia/version'];
/** In a container, `/dev` is not that of the machine. podman and docker create these files. */
const CONTAINER_PATHS = ['run/.containerenv', '.dockerenv'];

/** Without the programs of providers. Undefined in a container, which does not see what other containers would get. Never throws. */
export async function readDevices({ root = '/' }: DeviceProbeOptions = {}): Promise<Omit<DeviceFacts, 'programs'> | undefined> {
  const exists = async (path: string): Promise<boolean> =>
    access(join(root, path)).then(
      () => true,
      () => false,
    );
  const any = async (paths: readonly string[]): Promise<boolean> => (await Promise.all(paths.map(exists))).includes(true);
  if (await any(CONTAINER_PATHS)) return undefined;
  const nodes = (await readdir(join(root, 'dev/dri')).catch((): string[] => [])).filter((name) => name.startsWith('renderD')).toSorted();
  const driverOf = async (node: string): Promise<string> =>
    readlink(join(root, 'sys/class/drm', node, 'device/driver')).then(basename, () => 'unknown');
  const [kfd, nvidia, accel, renderDrivers] = await Promise.all([
    exists('dev/kfd'),
    any(NVIDIA_PATHS),
    exists('dev/accel'),
    Promise.all(nodes.map(driverOf)),
  ]);
  return { kfd, nvidia, accel, renderDrivers };
}
