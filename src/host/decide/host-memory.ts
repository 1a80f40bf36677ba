/** Parses memory files of the kernel. Pure. */

export interface Memory {
  readonly totalBytes: number;
  readonly availableBytes: number;
}

/** Parses `/proc/meminfo`. "Available" includes the page cache, but no swap. */
export function memoryOfHost(meminfo: string): Memory | undefined {
  const bytes = (key: string): number | undefined => {
    const found = new RegExp(`^${key}: +([0-9]+) kB$`, 'm').exec(meminfo)?.[1];
    return found === undefined ? undefined : Number(found) * 1024;
  };
  const totalBytes = bytes('MemTotal');
  const availableBytes = bytes('MemAvailable') ?? bytes('MemFree');
  return totalBytes === undefined || availableBytes === undefined ? undefined : { totalBytes, availableBytes };
}

/** Parses `/proc/self/cgroup` into our group and its parents, each of which may limit memory. */
export function cgroupPaths(selfCgroup: string): readonly { readonly version: 1 | 2; readonly path: string }[] {
  return selfCgroup
    .split('\n')
    .map((line) => /^([0-9]+):([^:]*):(\/.*)$/.exec(line))
    .flatMap((match) => {
      const [, number, controllers = '', path = '/'] = match ?? [];
      if (match === null || path.split('/').includes('..')) return [];
      const version = number === '0' && controllers === '' ? 2 : controllers.split(',').includes('memory') ? 1 : undefined;
      return version === undefined ? [] : parentsOf(path).map((each): { version: 1 | 2; path: string } => ({ version, path: each }));
    });
}

function parentsOf(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  return parts.map((_, index) => `/${parts.slice(0, parts.length - index).join('/')}`).concat('/');
}

/** Undefined if the group has no limit. Inactive cache counts as free, because the kernel reclaims it first. */
export function memoryOfCgroup(limit: string | undefined, usage: string | undefined, stat: string | undefined): Memory | undefined {
  const totalBytes = Number(limit?.trim() || Number.NaN);
  const used = Number(usage?.trim() || Number.NaN);
  if (!Number.isFinite(totalBytes) || !Number.isFinite(used)) return undefined;
  const inactive = Number(/^(?:total_)?inactive_file ([0-9]+)$/m.exec(stat ?? '')?.[1] ?? 0);
  return { totalBytes, availableBytes: Math.min(totalBytes, Math.max(0, totalBytes - Math.max(0, used - inactive))) };
}
