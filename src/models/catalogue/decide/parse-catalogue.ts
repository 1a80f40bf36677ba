/**
 * Parses the text of a catalogue. An invalid entry is refused with file, line and column, and does not affect others. A
 * user entry needs `override = true` to replace a shipped one, so an upgrade never changes what an id means. Pure.
 */
import { createHash } from 'node:crypto';
import { parseDocument, placeProblems } from '../../../files/toml/decide/parse-document.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import { checkDocument, type CheckedDocument, type SpecProblem } from '../../../schema/slot/spec-problem.ts';
import { CatalogueDocument, CatalogueRecord, providerOf, nameOfFile, type CatalogueRecordFile } from './catalogue-document.ts';
import type { ModelContents } from '../../../providers/provider.ts';
import type { ProviderKind } from '../../../schema/slot/provider-kinds.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import { parseSizeBytes } from '../../../schema/words/quantities.ts';
import type { CatalogueEntry, CatalogueFile } from '../catalogue.ts';

export type CatalogueRecords = ReadonlyMap<string, CatalogueRecord>;

export interface ParsedCatalogue {
  readonly records: CatalogueRecords;
  readonly problems: readonly SpecProblem[];
  /** Problems of refused entries by id; undefined if the text could not be parsed. */
  readonly refused: ReadonlyMap<string, readonly SpecProblem[]> | undefined;
  /** Day, such as `2026-11-26`. */
  readonly published?: string | undefined;
}

/** `file` appears in problems. `shipped`: the shipped entries, if this is the user's catalogue. */
export function parseCatalogue(text: string, file: string, shipped: CatalogueRecords = new Map()): ParsedCatalogue {
  const read = parseDocument(text);
  if (!read.ok) return unreadable({ path: [], message: read.message, file, ...read.position });
  const outer = checkDocument(CatalogueDocument, read.document, 'snake_case');
  if (!outer.ok) return { records: new Map(), problems: placeProblems(text, file, outer.problems), refused: undefined };
  const records = new Map<string, CatalogueRecord>();
  const refused = new Map<string, number>();
  const problems: SpecProblem[] = [];
  for (const [index, written] of outer.value.models.entries()) {
    const checked = checkRecord(written, { records, shipped });
    if (checked.ok) records.set(checked.value.id, checked.value);
    else {
      const id = isTable(written) && typeof written['id'] === 'string' ? written['id'] : undefined;
      if (id !== undefined && !records.has(id)) refused.set(id, index);
      problems.push(...checked.problems.map((problem) => ({ ...problem, path: ['models', index, ...problem.path] })));
    }
  }
  const placed = placeProblems(text, file, problems);
  const ofEntry = (index: number): readonly SpecProblem[] => placed.filter(({ path }) => path[1] === index);
  const { published } = outer.value;
  return { records, problems: placed, refused: new Map([...refused].map(([id, index]) => [id, ofEntry(index)])), published };
}

/** Result for a file without a readable entry. */
export const unreadable = (problem: SpecProblem): ParsedCatalogue => ({ records: new Map(), problems: [problem], refused: undefined });

type Known = Readonly<Record<'records' | 'shipped', CatalogueRecords>>;

function checkRecord(written: unknown, { records, shipped }: Known): CheckedDocument<CatalogueRecord> {
  const checked = checkDocument(CatalogueRecord, written, 'snake_case');
  if (!checked.ok) return checked;
  const { id, override } = checked.value;
  const own = shipped.get(id);
  if (records.has(id)) return refuse(['id'], `An earlier entry has the id "${id}"; use another one`);
  if (own !== undefined && !override)
    return refuse(['id'], `The shipped catalogue has the id "${id}"; use another one, or add "override = true" to replace that entry`);
  if (own === undefined && override && shipped.size > 0)
    return refuse(['override'], `The shipped catalogue has no model "${id}"; remove "override"`);
  if (own !== undefined && providerOf(own) !== providerOf(checked.value))
    return refuse(['kind'], `The shipped model "${id}" has the provider "${providerOf(own)}"; use another id`);
  return refusePath(checked.value, [...shipped.values(), ...records.values()]) ?? checked;
}

/** Two models must not replace each other's files. */
function refusePath({ id, files }: CatalogueRecord, others: readonly CatalogueRecord[]) {
  for (const [index, { path, sha256 }] of files.entries()) {
    const taken = others.find(
      (other) => other.id !== id && other.files.some((file) => path !== undefined && file.path === path && file.sha256 !== sha256),
    );
    if (taken !== undefined)
      return refuse(['files', index, 'path'], `Another file of the model "${taken.id}" has this path; use another one`);
  }
  return undefined;
}

function refuse(path: SpecProblem['path'], message: string): { readonly ok: false; readonly problems: readonly SpecProblem[] } {
  return { ok: false, problems: [{ path, message }] };
}

export interface EntryContext {
  readonly hubUrl: (repo: string, commit: string, path: string) => string;
  /** Providers of this version. */
  readonly providers: ReadonlySet<ProviderKind>;
  /** The entry is from `models.toml`. */
  readonly isOwn: boolean;
}

const MIB = 2 ** 20;
/** Weights, plus context and compute buffers, whose size is unknown before the file is here. */
const LEAST_MEMORY = { share: 0.1, bytes: 256 * MIB };

export function entryOf(record: CatalogueRecord, context: EntryContext): CatalogueEntry {
  const { id, kind, family = '', license = '', licenseUrl = LICENSE_URLS.get(license) ?? '', gated, verified, minMemory, minVram } = record;
  const provider = providerOf(record);
  const directory = `catalogue/${id}/${contentHash(record)}`;
  const [first, ...more] = record.files.map((file) => fileOf(file, directory, context.hubUrl));
  if (first === undefined) throw new Error(`The entry "${id}" has no files, although the schema requires one`);
  const sizeBytes = record.files.reduce((sum, { size }) => sum + size, 0);
  const leastMemoryBytes = Math.ceil((sizeBytes * (1 + LEAST_MEMORY.share) + LEAST_MEMORY.bytes) / MIB) * MIB;
  const missing = context.providers.has(provider)
    ? undefined
    : `it needs the provider "${provider}", which this version does not include yet`;
  const reason = missing ?? record.notSelectable;
  return {
    id,
    kind,
    provider,
    family,
    files: [first, ...more],
    license,
    licenseUrl,
    isGated: gated,
    minVramBytes: minVram === undefined ? 0 : parseSizeBytes(minVram),
    minMemoryBytes: minMemory === undefined ? leastMemoryBytes : parseSizeBytes(minMemory),
    verified,
    sources: [...new Set([...record.files.flatMap(pageOf), ...record.sources])],
    isOwn: context.isOwn,
    selectable: reason === undefined,
    ...defined({
      directory: first.archive === undefined ? undefined : directory,
      context: record.context,
      stated: provider === 'gguf' ? statedOf(record) : undefined,
      reason,
    }),
  };
}

const LICENSE_URLS: ReadonlyMap<string, string> = new Map([
  ['apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0'],
  ['mit', 'https://opensource.org/license/mit'],
]);

/** The page of a repository, at its commit. */
const pageOf = ({ repo, commit }: CatalogueRecordFile): readonly string[] =>
  repo === undefined ? [] : [`https://huggingface.co/${repo}${commit === undefined ? '' : `/tree/${commit}`}`];

/**
 * Different content gets a different directory: an edited entry is a new download, and servers keep open files. The
 * oldest version counts, so that a file which is accepted stays where it is when its publisher replaces it.
 */
function contentHash({ files }: CatalogueRecord): string {
  const hash = createHash('sha256');
  for (const { sha256, earlier } of files) hash.update((earlier?.at(-1)?.sha256 ?? sha256).toLowerCase());
  return hash.digest('hex').slice(0, 12);
}

function fileOf(file: CatalogueRecordFile, directory: string, hubUrl: EntryContext['hubUrl']): CatalogueFile {
  const { repo, commit, url: address, size: sizeBytes, archive: format, unpackedSize, earlier = [] } = file;
  const path = format === undefined ? (file.path ?? `${directory}/${nameOfFile(file)}`) : directory;
  const archive = format === undefined ? {} : { archive: { format, ...defined({ unpackedBytes: unpackedSize }) } };
  const others = earlier.map((version) => ({ sha256: version.sha256.toLowerCase(), sizeBytes: version.size }));
  const content = { kind: 'url' as const, sha256: file.sha256.toLowerCase(), sizeBytes, ...(commit === undefined ? { others } : {}) };
  if (repo === undefined || file.file === undefined) return { path, from: { ...content, url: address ?? '' }, ...archive };
  return { path, from: { ...content, url: hubUrl(repo, commit ?? 'main', file.file), repo }, ...archive };
}

/** Contents in the terms of the GGUF provider. */
function statedOf({ kind, pooling = 'mean', architecture, context }: CatalogueRecord): ModelContents {
  const poolingType = kind === 'embed' ? POOLING_TYPES[pooling] : undefined;
  return defined({ poolingType, hasClassifier: kind === 'rerank' ? true : undefined, architecture, trainedContext: context });
}

/** Values of GGUF's `pooling_type`. */
const POOLING_TYPES = { mean: 1, cls: 2, last: 3 } as const;
