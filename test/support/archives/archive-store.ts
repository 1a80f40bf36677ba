/** An empty store of models, and a server whose archive is fetched into it. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fetchModel, type FetchModel } from '../../../src/models/download/fetch-model.ts';
import { createModelStore, type DirectoryModelStore } from '../../../src/models/store.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { toyFormat } from '../toy-provider/toy-format.ts';
import { startArchiveServer, type ArchiveServer } from './archive-server.ts';

export const PARROT = ModelId.parse('parrot');
export const formats = [toyFormat];
const never = new AbortController().signal;

export type ArchiveStore = Awaited<ReturnType<typeof openArchiveStore>>;

export async function openArchiveStore() {
  const outside = await mkdtemp(path.join(tmpdir(), 'svc-archive-'));
  const root = path.join(outside, 'models');
  await mkdir(root);
  let server: ArchiveServer | undefined;
  const storeOf = ({ catalogue }: ArchiveServer): DirectoryModelStore => createModelStore({ root, formats, catalogue });
  return {
    /** The directory around the root, in which nothing else may appear. */
    outside,
    root,
    storeOf,
    /** Serves this archive, in place of the last one. */
    async serve(archive: Uint8Array, more: Parameters<typeof startArchiveServer>[1] = {}): Promise<ArchiveServer> {
      server?.close();
      server = await startArchiveServer(archive, more);
      return server;
    },
    fetch: async ({ catalogue }: ArchiveServer, more: Partial<FetchModel> = {}, until = never) =>
      await fetchModel({ root, formats, id: PARROT, catalogue, writer: 'me', onProgress: () => {}, ...more }, until),
    presenceOf: async (from: ArchiveServer) => (await storeOf(from).observe([PARROT], never)).get(PARROT),
    /** Everything below a directory. */
    contents: async (directory = root): Promise<readonly string[]> => (await readdir(directory, { recursive: true })).toSorted(),
    async close(): Promise<void> {
      server?.close();
      await rm(outside, { recursive: true, force: true });
    },
  };
}
