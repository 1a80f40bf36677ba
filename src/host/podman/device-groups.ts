/** The groups that own device nodes. Without capabilities even the container's root opens a node only as a member of its group. */
import { readdir, stat } from 'node:fs/promises';

/** Group numbers of the nodes at these paths, or in these directories; what is not there or has no node brings none. */
export async function deviceGroups(devices: readonly string[]): Promise<readonly number[]> {
  const groups = await Promise.all(devices.filter((device) => device.startsWith('/')).map(groupsAt));
  return [...new Set(groups.flat())].filter((group) => group !== 0).toSorted((a, b) => a - b);
}

async function groupsAt(path: string): Promise<number[]> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) return [found.gid];
    const entries = await readdir(path, { withFileTypes: true });
    const nodes = entries.filter((entry) => entry.isCharacterDevice()).map((entry) => stat(`${path}/${entry.name}`));
    return (await Promise.all(nodes)).map((node) => node.gid);
  } catch {
    return [];
  }
}
