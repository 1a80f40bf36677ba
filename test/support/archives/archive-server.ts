/** A server with one archive, and the entry of a catalogue that describes it: a model of the toy provider. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { packTar, type TarEntry } from 'modern-tar';
import type { Archive, Catalogue, CatalogueEntry, Download } from '../../../src/models/catalogue/catalogue.ts';
import { encodeBzip2 } from './encode-bzip2.ts';

export interface ArchiveServer {
  readonly catalogue: Catalogue;
  readonly entry: CatalogueEntry;
  /** How often it was asked for the archive. */
  requests(): number;
  close(): void;
}

/** Relative to the root of the store. */
export const UNPACKED = 'catalogue/parrot/0123456789ab';

export const fileEntry = (name: string, body: string | Uint8Array): TarEntry => ({
  header: { name, size: Buffer.byteLength(body), type: 'file' },
  body,
});

export const weights = randomBytes(60_000);
export const words = 'Polly wants a model\n'.repeat(100);
/** A model of the toy provider in one directory, as most archives of models are. */
export const ENTRIES: readonly TarEntry[] = [
  { header: { name: 'parrot-v1/', size: 0, type: 'directory' } },
  fileEntry('parrot-v1/toy.json', JSON.stringify({ phrase: 'Polly', weightsBytes: weights.length })),
  fileEntry('parrot-v1/weights.bin', weights),
  fileEntry('parrot-v1/data/words.txt', words),
];

export async function archiveOf(entries: readonly TarEntry[]): Promise<Uint8Array> {
  return encodeBzip2(await packTar(entries));
}

export async function startArchiveServer(
  archive: Uint8Array,
  more: { readonly archive?: Partial<Archive>; readonly from?: Partial<Download> } = {},
): Promise<ArchiveServer> {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.writeHead(200, { 'content-length': archive.length });
    response.end(archive);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const sha256 = createHash('sha256').update(archive).digest('hex');
  const from: Download = { kind: 'url', url: `http://127.0.0.1:${port}/parrot.tar.bz2`, sha256, sizeBytes: archive.length, ...more.from };
  const entry: CatalogueEntry = {
    id: 'parrot',
    kind: 'chat',
    provider: 'npu',
    family: 'toy',
    files: [{ path: UNPACKED, from, archive: { format: 'tar.bz2', ...more.archive } }],
    directory: UNPACKED,
    license: 'mit',
    licenseUrl: '',
    minVramBytes: 0,
    selectable: true,
  };
  return {
    catalogue: new Map([['parrot', entry]]),
    entry,
    requests: () => requests,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
