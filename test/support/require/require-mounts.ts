/** Suites that mount small file systems: only root may. For anyone else they are skipped loudly, or fail where they are required. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWith } from './describe-with.ts';

export interface SmallDisk {
  /** Absolute path. */
  readonly path: string;
  resize(mib: number): void;
  setReadOnly(isReadOnly: boolean): void;
  dispose(): void;
}

const REASON = 'only root can mount file systems for tests';

/** A file system in memory of this size, at a path of its own. Throws if it cannot be mounted. */
export function mountSmallDisk(mib: number): SmallDisk {
  const directory = mkdtempSync(path.join(tmpdir(), 'svc-disk-'));
  mount(['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', directory]);
  return {
    path: directory,
    resize: (size) => mount(['-o', `remount,size=${size}m`, directory]),
    setReadOnly: (isReadOnly) => mount(['-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, directory]),
    dispose() {
      spawnSync('umount', ['--lazy', directory]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function mount(args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('mount', [...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`Cannot mount "${args.at(-1) ?? ''}": ${error?.message ?? stderr}`);
}

function canMount(): boolean {
  try {
    mountSmallDisk(1).dispose();
    return true;
  } catch {
    return false;
  }
}

export function describeWithMounts(name: string, suite: () => void): void {
  describeWith({ isThere: canMount(), word: 'mounts', what: 'can mount file systems', reason: REASON }, name, suite);
}
