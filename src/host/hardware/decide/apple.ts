/** Macs: what `sysctl` and `vm_stat` print. Pure. */
import type { Cpu, MemoryAmount } from '../../../schema/status/hardware.ts';
import { backendsOf, sharedMemory, type Detected } from './detected.ts';
import { parseNumber, type MachineView } from './machine-view.ts';

const KEYS = ['hw.memsize', 'hw.physicalcpu', 'hw.logicalcpu', 'machdep.cpu.brand_string', 'iogpu.wired_limit_mb'] as const;
export const SYSCTL: readonly [string, ...string[]] = ['sysctl', ...KEYS];
export const VM_STAT: readonly [string, ...string[]] = ['vm_stat'];

/** `sysctl` prints `hw.memsize: 68719476736`, a line for each key that it knows. */
function sysctl(view: MachineView, key: (typeof KEYS)[number]): string | undefined {
  const line = view
    .tool(SYSCTL)
    ?.split('\n')
    .find((each) => each.startsWith(`${key}:`));
  return line?.slice(key.length + 1).trim();
}

export function appleCpu(view: MachineView): Partial<Cpu> {
  const model = sysctl(view, 'machdep.cpu.brand_string');
  const threads = parseNumber(sysctl(view, 'hw.logicalcpu'));
  const cores = parseNumber(sysctl(view, 'hw.physicalcpu'));
  return {
    ...(model === undefined ? {} : { model }),
    ...(threads === undefined ? {} : { threads }),
    ...(cores === undefined ? {} : { cores }),
  };
}

/** Pages of files that are not in use (inactive, speculative, purgeable) count as available, as the kernel reclaims them first. */
export function appleMemory(view: MachineView): MemoryAmount | undefined {
  const totalBytes = parseNumber(sysctl(view, 'hw.memsize'));
  const text = view.tool(VM_STAT);
  const pageBytes = parseNumber(/page size of ([0-9]+) bytes/.exec(text ?? '')?.[1]);
  if (totalBytes === undefined || text === undefined || pageBytes === undefined) return undefined;
  const pages = (name: string): number => parseNumber(new RegExp(`^Pages ${name}:\\s+([0-9]+)\\.$`, 'm').exec(text)?.[1]) ?? 0;
  const available = ['free', 'inactive', 'speculative', 'purgeable'].reduce((sum, name) => sum + pages(name), 0) * pageBytes;
  return { totalBytes, availableBytes: Math.min(totalBytes, available) };
}

/** Metal lets a GPU use about this part of the memory, unless `iogpu.wired_limit_mb` says otherwise. https://github.com/gpustack/gpustack/issues/1375 */
const SHARE_OF_HOST = 0.75;

/** None of the backends runs on it: no container of Linux gets at a GPU of Apple, and its programs compute with Metal. */
export function appleGpu(view: MachineView, host: MemoryAmount | undefined): readonly Detected[] {
  const name = sysctl(view, 'machdep.cpu.brand_string');
  if (name === undefined || !name.startsWith('Apple ')) return [];
  const limitMb = parseNumber(sysctl(view, 'iogpu.wired_limit_mb')) ?? 0;
  const limitBytes = limitMb > 0 ? limitMb * 1024 * 1024 : Math.floor((host?.totalBytes ?? 0) * SHARE_OF_HOST);
  const vulkan = 'macOS has no driver for Vulkan';
  return [{ kind: 'gpu', vendor: 'apple', name, ...backendsOf({ vulkan }), memory: sharedMemory(host, limitBytes), unified: true }];
}
