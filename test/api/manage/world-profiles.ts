/** Real profiles, in directories, for the slots that a world has in memory. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createProfileStore } from '../../../src/host/slots/profile-directory.ts';
import { createTomlEditor } from '../../../src/host/slots/toml-editor.ts';
import type { ProfileStore } from '../../../src/schema/slot/profile-store.ts';
import type { World } from './world.ts';

export interface WorldProfiles {
  readonly store: ProfileStore;
  /** Writes a file as somebody does by hand, such as `coding/primary.toml`. */
  write(file: string, text: string): Promise<void>;
  /** Removes all profiles. */
  clear(): Promise<void>;
  remove(): Promise<void>;
}

export async function openProfiles(world: Pick<World, 'slots' | 'save'>): Promise<WorldProfiles> {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-profiles-'));
  const [directory, slotsDirectory] = [path.join(root, 'profiles'), path.join(root, 'slots')];
  const editor = createTomlEditor({ directory: slotsDirectory });
  const files = createProfileStore({
    directory,
    slotsDirectory,
    quietPeriodMs: 1,
    editor: {
      async putTexts(edits) {
        if (world.slots.broken !== undefined) return { kind: 'failed', message: world.slots.broken };
        if (world.slots.managed !== undefined) return { kind: 'managed', message: world.slots.managed };
        const put = await editor.putTexts(edits);
        if (put.kind === 'done') for (const { name, text } of edits) world.save(name, text);
        return put;
      },
    },
  });
  async function withSlots<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(slotsDirectory, { recursive: true });
    const texts = new Map([...world.slots.texts].map(([name, text]) => [`${name}.toml`, text]));
    for (const file of await readdir(slotsDirectory)) if (!texts.has(file)) await rm(path.join(slotsDirectory, file));
    for (const [file, text] of texts) await writeFile(path.join(slotsDirectory, file), text);
    return await work();
  }
  return {
    store: {
      list: async () => await withSlots(async () => await files.list()),
      read: async (name) => await withSlots(async () => await files.read(name)),
      save: async (name, options) => await withSlots(async () => await files.save(name, options)),
      remove: async (name) => await files.remove(name),
      apply: async (name, options) => await withSlots(async () => await files.apply(name, options)),
    },
    async write(file, text) {
      await mkdir(path.dirname(path.join(directory, file)), { recursive: true });
      await writeFile(path.join(directory, file), text);
    },
    clear: async () => await rm(directory, { recursive: true, force: true }),
    remove: async () => await rm(root, { recursive: true, force: true }),
  };
}
