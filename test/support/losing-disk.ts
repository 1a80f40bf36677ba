/**
 * A disk that loses power. It writes to the real one and keeps account of what has reached the platter: a text after
 * the sync of its file, and a new name after the sync of its directory. Everything else may be there or not, and a text
 * may be empty or torn.
 */
import { mkdir, open, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SYSTEM_DISK, type Disk } from '../../src/files/regular-file.ts';

/** Texts by absolute path, as a restart may find them. */
export type Remains = ReadonlyMap<string, string>;

interface Written {
  text: string;
  isSynced: boolean;
}

const TEARS: readonly ((text: string) => string)[] = [
  () => '',
  (text) => text.slice(0, text.length / 2),
  (text) => '\0'.repeat(text.length),
  (text) => text,
];

export function createLosingDisk(onStep: () => void) {
  const safe = new Map<string, string>();
  const written = new Map<string, Written>();
  let renamed: { readonly to: string; readonly file: Written }[] = [];

  const disk: Disk = {
    ...SYSTEM_DISK,
    async open(place, ...rest) {
      const handle = await open(place, ...rest);
      const key = String(place);
      if ((await handle.stat()).isDirectory()) {
        const sync = handle.sync.bind(handle);
        handle.sync = async () => {
          await sync();
          for (const { to, file } of renamed) if (path.dirname(to) === key) safe.set(to, file.text);
          renamed = renamed.filter(({ to }) => path.dirname(to) !== key);
          onStep();
        };
        return handle;
      }
      const file: Written = { text: '', isSynced: false };
      written.set(key, file);
      const [write, sync] = [handle.writeFile.bind(handle), handle.sync.bind(handle)];
      handle.writeFile = async (text) => {
        await write(text);
        file.text = typeof text === 'string' ? text : '';
        onStep();
      };
      handle.sync = async () => {
        await sync();
        file.isSynced = true;
        onStep();
      };
      return handle;
    },
    async rename(from, to) {
      await rename(from, to);
      const file = written.get(String(from));
      if (file !== undefined) renamed.push({ to: String(to), file });
      onStep();
    },
  };

  return {
    disk,
    /** Everything that a restart may find if power fails now. */
    remains(): readonly Remains[] {
      const states: Remains[] = [];
      for (let count = 0; count <= renamed.length; count += 1) {
        const kept = renamed.slice(0, count);
        for (const tear of kept.every(({ file }) => file.isSynced) ? [TEARS[0]] : TEARS)
          states.push(
            new Map([...safe, ...kept.map(({ to, file }) => [to, file.isSynced ? file.text : (tear?.(file.text) ?? '')] as const)]),
          );
      }
      return states;
    },
  };
}

export async function restore(remains: Remains, from: string, to: string): Promise<void> {
  for (const [place, text] of remains) {
    const target = path.join(to, path.relative(from, place));
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, text);
  }
}
