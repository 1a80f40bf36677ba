/** Reads the devices, and the total and available memory, for workloads. The limit of our own container counts if it is lower than the machine's memory. */
import { readFile } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import type { HostFacts, HostProbe } from '../reconciler/ports.ts';
import { cgroupPaths, memoryOfCgroup, memoryOfHost, type Memory } from './decide/host-memory.ts';

export interface HostProbeOptions {
  /** Where `/proc` and `/sys/fs/cgroup` are; for tests. */
  readonly procDir?: string;
  readonly cgroupDir?: string;
  /** Reads the devices as well, if set. */
  readonly devices?: () => Promise<HostFacts['devices']>;
}

export function createHostProbe({ procDir = '/proc', cgroupDir = '/sys/fs/cgroup', devices }: HostProbeOptions = {}): HostProbe {
  const text = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);

  const cgroupMemory = async (): Promise<readonly Memory[]> => {
    const own = await text(join(procDir, 'self/cgroup'));
    const found = cgroupPaths(own ?? '').map(async ({ version, path }): Promise<Memory | undefined> => {
      const directory = version === 2 ? join(cgroupDir, path) : join(cgroupDir, 'memory', path);
      const [limit, usage] = version === 2 ? ['memory.max', 'memory.current'] : ['memory.limit_in_bytes', 'memory.usage_in_bytes'];
      const [limitText, usageText, statText] = await Promise.all([
        text(join(directory, limit ?? '')),
        text(join(directory, usage ?? '')),
        text(join(directory, 'memory.stat')),
      ]);
      return memoryOfCgroup(limitText, usageText, statText);
    });
    return (await Promise.all(found)).filter((memory) => memory !== undefined);
  };

  const readMemory = async (): Promise<HostFacts> => {
    const meminfo = await text(join(procDir, 'meminfo'));
    const host = meminfo === undefined ? { totalBytes: totalmem(), availableBytes: freemem() } : memoryOfHost(meminfo);
    if (host === undefined) return { memoryTotalBytes: undefined, memoryAvailableBytes: undefined };
    const limits = (await cgroupMemory()).filter((memory) => memory.totalBytes < host.totalBytes);
    return {
      memoryTotalBytes: Math.min(host.totalBytes, ...limits.map((memory) => memory.totalBytes)),
      memoryAvailableBytes: Math.min(host.availableBytes, ...limits.map((memory) => memory.availableBytes)),
    };
  };

  return {
    async read() {
      if (devices === undefined) return readMemory();
      const [memory, found] = await Promise.all([readMemory(), devices()]);
      return { ...memory, devices: found };
    },
  };
}
