/** Finds the groups that own device nodes. Without capabilities, even root in a container must be a member of a node's group to open it. */
import { readdir, stat } from 'node:fs/promises';

/** Returns the group ids of the nodes at these paths or in these directories. Paths without nodes are ignored. */
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
