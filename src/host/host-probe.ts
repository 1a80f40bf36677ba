/**
 * Reads the hardware and the memory for workloads: the limit of our own container if it is lower than the memory of the
 * machine.
 */
import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import type { HostProbe } from '../reconciler/ports.ts';
import type { HostFacts, Hardware, MemoryAmount as Memory } from '../schema/status/hardware.ts';
import { cgroupPaths, memoryOfCgroup, memoryOfHost } from './hardware/decide/hardware-of.ts';
import { codeOf } from '../platform/error-text.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';

interface HostProbeOptions {
  /** For tests. */
  readonly procDir?: string;
  readonly cgroupDir?: string;
  /** Its memory replaces `/proc/meminfo`. */
  readonly hardware?: () => Promise<Hardware>;
}

export function createHostProbe({ procDir = '/proc', cgroupDir = '/sys/fs/cgroup', hardware }: HostProbeOptions = {}): HostProbe {
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

  const readMemory = async (): Promise<Memory | undefined> => {
    const meminfo = await text(join(procDir, 'meminfo'));
    return meminfo === undefined ? { totalBytes: totalmem(), availableBytes: freemem() } : memoryOfHost(meminfo);
  };

  const withLimits = async (host: Memory | undefined): Promise<HostFacts> => {
    if (host === undefined) return { memoryTotalBytes: undefined, memoryAvailableBytes: undefined };
    const limits = (await cgroupMemory()).filter((memory) => memory.totalBytes < host.totalBytes);
    return {
      memoryTotalBytes: Math.min(host.totalBytes, ...limits.map((memory) => memory.totalBytes)),
      memoryAvailableBytes: Math.min(host.availableBytes, ...limits.map((memory) => memory.availableBytes)),
    };
  };

  return {
    async read() {
      if (hardware === undefined) return withLimits(await readMemory());
      const found = await hardware();
      // Limits of this machine do not apply to a recorded one.
      if (found.source.kind === 'recording')
        return { memoryTotalBytes: found.memory?.totalBytes, memoryAvailableBytes: found.memory?.availableBytes, hardware: found };
      return { ...(await withLimits(found.memory)), hardware: found };
    },
  };
}

/** Kept free for files, processes, probes and downloads, also under the most connections. */
const RESERVED_DESCRIPTORS = 256;
/** The connection of the client, and the one to its server. */
const DESCRIPTORS_PER_REQUEST = 2;

/** How many connections the descriptors of a process suffice for; undefined where the system does not tell. */
export async function mostConnections(): Promise<{ readonly descriptors: number; readonly connections: number } | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const descriptors = Number(/^Max open files +([0-9]+)/m.exec(limits)?.[1]);
  if (!Number.isFinite(descriptors)) return undefined;
  return { descriptors, connections: Math.max(1, Math.floor((descriptors - RESERVED_DESCRIPTORS) / DESCRIPTORS_PER_REQUEST)) };
}

/** Processes in the control group of this service that the kernel killed for want of memory; undefined if unknown. */
export async function countOomKills(procDir = '/proc', cgroupDir = '/sys/fs/cgroup'): Promise<number | undefined> {
  const groups = cgroupPaths(await readFile(join(procDir, 'self/cgroup'), 'utf8').catch(() => ''));
  for (const { version, path } of groups) {
    const file = version === 2 ? join(cgroupDir, path, 'memory.events') : join(cgroupDir, 'memory', path, 'memory.oom_control');
    const kills = /^oom_kill ([0-9]+)$/m.exec(await readFile(file, 'utf8').catch(() => ''))?.[1];
    if (kills !== undefined) return Number(kills);
  }
  return undefined;
}

/** Whether the kernel's log says that it killed this process for want of memory. Unreadable: false. Never blocks. */
export async function isKilledByKernel(pid: number, startedAt: number, log = '/dev/kmsg'): Promise<boolean> {
  await using file = await open(log, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  // Process ids are used again, so that older records do not count.
  const sinceUs = Number(process.hrtime.bigint()) / 1000 - (Date.now() - startedAt) * 1000;
  let found = false;
  // Each read returns one record, and fails with `EAGAIN` after the last one.
  for (let left = MOST_RECORDS; file !== undefined && left > 0; left -= 1) {
    const read = await file.read(Buffer.alloc(RECORD_BYTES)).catch(codeOf);
    if (read === 'EPIPE') continue;
    if (typeof read === 'string' || read.bytesRead === 0) break;
    const [, atUs, killed] = KILL.exec(read.buffer.toString('utf8', 0, read.bytesRead)) ?? [];
    found ||= Number(killed) === pid && Number(atUs) >= sinceUs;
  }
  return found;
}

const KILL = /^\d+,\d+,(\d+),[^;]*;(?:Memory cgroup o|O)ut of memory: Killed process (\d+) /;
/** More than the log keeps. */
const MOST_RECORDS = 100_000;
const RECORD_BYTES = 8192;

/**
 * Succeeds if nothing listens on `127.0.0.1:port` or all addresses: servers such as whisper.cpp would silently share an
 * occupied port. The result may be outdated at once.
 */
export async function checkPortFree(port: number): Promise<Result<void>> {
  const error = await bindError('127.0.0.1', port);
  if (error === undefined) return ok(undefined);
  return codeOf(error) === 'EADDRINUSE' ? portTaken(port) : fail('retry', 'PortTaken', `Port ${port} cannot be used: ${error.message}`);
}

/** Undefined if the address is free. Binds it without listening: a listener would accept clients and cut them off. */
export async function bindError(host: string, port: number): Promise<Error | undefined> {
  const found = await lookup(host).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
  if (found instanceof Error) return found;
  const away = { host: found.family === 6 ? '::1' : '127.0.0.1', port: UNUSED_PORT };
  return new Promise((resolve) => {
    const socket = connect({ ...away, localAddress: found.address, localPort: port });
    const isBound = (): void => {
      socket.resetAndDestroy();
      resolve(undefined);
    };
    socket.once('connect', isBound).setTimeout(1000, isBound);
    socket.once('error', (error) => resolve('syscall' in error && error.syscall === 'bind' ? error : undefined));
  });
}

/** TCPMUX, which nothing serves: the connection is refused at once, after its own address was bound. */
const UNUSED_PORT = 1;

export const portTaken = (port: number): Result<never> =>
  fail('retry', 'PortTaken', `Another program listens on 127.0.0.1:${port}; stop it, or wait until another port is tried`);
