/**
 * Directories outside of the model store whose files appear in it, such as a ConfigMap that a kubelet mounts: its files are links into a directory that is replaced as a whole
 * when the ConfigMap changes. So such a file keeps the path that it appears under, whatever it links to.
 */
import path from 'node:path';
import type { MountedModels } from './decide/workflows-mount.ts';

export interface RealPlace {
  /** Links must not lead out of this directory. Absolute. */
  readonly base: string;
  /** Absolute. */
  readonly file: string;
  readonly isMounted: boolean;
}

/** Where a file is that appears at the absolute path `shown` of a store. */
export function realPlace(root: string, mounts: readonly MountedModels[], shown: string): RealPlace {
  for (const { at, directory } of mounts) {
    const place = path.join(root, at);
    if (isInside(place, shown)) return { base: directory, file: path.join(directory, path.relative(place, shown)), isMounted: true };
  }
  return { base: root, file: shown, isMounted: false };
}

/** Whether a path is that of a directory or of something in it. Both are absolute; links are not followed. */
export function isInside(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  // Names may begin with two dots.
  return relative !== '..' && !relative.startsWith('../') && !path.isAbsolute(relative);
}
