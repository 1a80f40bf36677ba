/** Turns an entry of the catalogue as it is written into what the store works with: addresses, places in the store, and what follows from the kind. Pure. */
import { createHash } from 'node:crypto';
import type { ModelContents } from '../../providers/provider.ts';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { parseSizeBytes } from '../../schema/words/quantities.ts';
import type { CatalogueEntry, CatalogueFile } from '../catalogue/catalogue.ts';
import { nameOfFile, providerOf, type CatalogueRecord, type CatalogueRecordFile } from '../catalogue/decide/catalogue-document.ts';

export interface EntryContext {
  /** Returns the address of a file on the Hub. */
  readonly hubUrl: (repo: string, commit: string, path: string) => string;
  /** The providers that this version includes. */
  readonly providers: ReadonlySet<ProviderKind>;
  /** Whether the entry is from `models.toml`. */
  readonly isOwn: boolean;
}

const MIB = 2 ** 20;
/** A model needs its weights, and something for its context and for computing, of which nothing is known before its file is here. */
const LEAST_MEMORY = { share: 0.1, bytes: 256 * MIB };

export function entryOf(record: CatalogueRecord, context: EntryContext): CatalogueEntry {
  const { id, kind, family = '', license = '', licenseUrl = '', gated, verified, sources, minMemory, minVram } = record;
  const provider = providerOf(record);
  const directory = `catalogue/${id}/${contentHash(record)}`;
  const [first, ...more] = record.files.map((file) => fileOf(file, directory, context.hubUrl));
  const isArchive = first?.archive !== undefined;
  if (first === undefined) throw new Error(`The entry "${id}" has no files, although the schema requires one`);
  const sizeBytes = record.files.reduce((sum, { size }) => sum + size, 0);
  const reason = whyNot(record, context);
  return {
    id,
    kind,
    provider,
    family,
    files: [first, ...more],
    ...(isArchive ? { directory } : {}),
    license,
    licenseUrl,
    isGated: gated,
    minVramBytes: minVram === undefined ? 0 : parseSizeBytes(minVram),
    minMemoryBytes: minMemory === undefined ? leastMemory(sizeBytes) : parseSizeBytes(minMemory),
    ...(record.context === undefined ? {} : { context: record.context }),
    ...(provider === 'gguf' ? { stated: statedOf(record) } : {}),
    verified,
    sources,
    isOwn: context.isOwn,
    selectable: reason === undefined,
    ...(reason === undefined ? {} : { reason }),
  };
}

function leastMemory(sizeBytes: number): number {
  return Math.ceil((sizeBytes * (1 + LEAST_MEMORY.share) + LEAST_MEMORY.bytes) / MIB) * MIB;
}

/** Another content has another directory, so an edited entry is a new download, and a server keeps the files that it has open. */
function contentHash({ files }: CatalogueRecord): string {
  const hash = createHash('sha256');
  for (const { sha256 } of files) hash.update(sha256.toLowerCase());
  return hash.digest('hex').slice(0, 12);
}

function fileOf(file: CatalogueRecordFile, directory: string, hubUrl: EntryContext['hubUrl']): CatalogueFile {
  const { repo, commit = 'main', url: address, size: sizeBytes, archive: format, unpackedSize } = file;
  const path = format === undefined ? (file.path ?? `${directory}/${nameOfFile(file)}`) : directory;
  const archive =
    format === undefined ? {} : { archive: { format, ...(unpackedSize === undefined ? {} : { unpackedBytes: unpackedSize }) } };
  const sha256 = file.sha256.toLowerCase();
  if (repo === undefined || file.file === undefined)
    return { path, from: { kind: 'url', url: address ?? '', sha256, sizeBytes }, ...archive };
  return { path, from: { kind: 'url', url: hubUrl(repo, commit, file.file), sha256, sizeBytes, repo }, ...archive };
}

/** Completes the sentence "Choose another model than X: …". */
function whyNot(record: CatalogueRecord, { providers }: EntryContext): string | undefined {
  const provider = providerOf(record);
  if (!providers.has(provider)) return `it needs the provider "${provider}", which this version does not include yet`;
  return record.notSelectable;
}

/** In the terms of the provider for GGUF. */
function statedOf({ kind, pooling, architecture, context }: CatalogueRecord): ModelContents {
  const pooled = kind === 'embed' ? { poolingType: POOLING_TYPES[pooling ?? 'mean'] } : {};
  return {
    ...pooled,
    ...(kind === 'rerank' ? { hasClassifier: true } : {}),
    ...(architecture === undefined ? {} : { architecture }),
    ...(context === undefined ? {} : { trainedContext: context }),
  };
}

/** Values of GGUF's `pooling_type`. */
const POOLING_TYPES = { mean: 1, cls: 2, last: 3 } as const;
