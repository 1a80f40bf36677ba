/** A directory that has the files of a ConfigMap in the way in which a kubelet mounts it (`AtomicWriter` of Kubernetes): links into a directory that is replaced as a whole. */
import { mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

let count = 0;

/** Writes the keys of the ConfigMap, or replaces them. */
export async function mountConfigMap(directory: string, data: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(directory, { recursive: true });
  count += 1;
  const version = `..2026_11_23_10_00_00.${count}`;
  await mkdir(path.join(directory, version));
  for (const [key, text] of Object.entries(data)) await writeFile(path.join(directory, version, key), text);
  const link = path.join(directory, '..data');
  const former = await readlink(link).catch(() => undefined);
  await symlink(version, path.join(directory, '..data_tmp'));
  await rename(path.join(directory, '..data_tmp'), link);
  const names = (await readdir(directory)).filter((name) => !name.startsWith('..'));
  for (const key of Object.keys(data)) if (!names.includes(key)) await symlink(path.join('..data', key), path.join(directory, key));
  for (const name of names) if (!Object.hasOwn(data, name)) await rm(path.join(directory, name));
  if (former !== undefined) await rm(path.join(directory, former), { recursive: true });
}
