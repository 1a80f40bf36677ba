/**
 * Reads the catalogue: the shipped `catalogue.toml` once, and the user's `models.toml` in each pass of the loop. An
 * invalid entry keeps its last good text, also after a restart; otherwise a typo would take the model of a running slot
 * away.
 */
import { createPublicKey, verify } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { quietRestMs, watchDirectory } from '../../files/watch-directory.ts';
import { readTextFile, type TextFile } from '../../files/read-text-file.ts';
import { LARGE_TEXT_BYTES, readRegularFile } from '../../files/regular-file.ts';
import { storeLastGood } from '../../files/write-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { Wake } from '../../reconciler/ports.ts';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { PUBLIC_KEY } from '../../schema/words/name-rules.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { formatProblem, type SpecProblem } from '../../schema/slot/spec-problem.ts';
import { DEMO_CATALOGUE, type Catalogue, type CatalogueEntry } from './catalogue.ts';
import { openAcceptedFiles, withAccepted } from './accepted-files.ts';
import { canBeId, CatalogueRecord } from './decide/catalogue-document.ts';
import { entryOf, parseCatalogue, unreadable, type CatalogueRecords, type ParsedCatalogue } from './decide/parse-catalogue.ts';
import { fileUrl, type HubAccess } from '../hub/hub-access.ts';

export type CatalogueSource = Awaited<ReturnType<typeof createCatalogueSource>>;

export interface CatalogueSourceOptions {
  /** Absolute path of `models.toml`; it need not exist. */
  readonly local: string;
  /** Where the last good entries are stored, as JSON; in memory only if unset. */
  readonly lastGoodFile?: string;
  /** Where files are recorded that users have accepted; nobody can accept any if unset. */
  readonly acceptedFile?: string;
  /** A signed catalogue that `svcctl catalogue update` has stored, and its public key. It need not exist. */
  readonly updated?: { readonly file: string; readonly key: string | undefined };
  readonly hub: Pick<HubAccess, 'endpoint'>;
  /** Providers of this version. */
  readonly providers: readonly ProviderKind[];
  readonly quietPeriodMs: number;
  readonly log: SourceLog;
}

/** Name in the state directory. */
export const UPDATED_CATALOGUE = 'catalogue.toml';

const SHIPPED = path.join(import.meta.dirname, 'catalogue.toml');
/** A file that keeps changing is read as it is after this time. */
const LONGEST_WAIT_MS = 2000;

export async function createCatalogueSource(options: CatalogueSourceOptions) {
  const { local, log, hub, lastGoodFile, updated } = options;
  const context = {
    hubUrl: (repo: string, commit: string, file: string) => fileUrl(hub.endpoint, repo, commit, file),
    providers: new Set(options.providers),
  };
  const shipped = parseCatalogue(await readFile(SHIPPED, 'utf8'), SHIPPED);
  const entriesOf = (records: CatalogueRecords, isOwn: boolean): readonly (readonly [string, CatalogueEntry])[] =>
    [...records.values()].map((record) => [record.id, entryOf(record, { ...context, isOwn })]);
  const acceptedFiles =
    options.acceptedFile === undefined ? undefined : await openAcceptedFiles(options.acceptedFile, () => accept(lastGood));
  let lastGood = lastGoodFile === undefined ? new Map() : await readLastGood(lastGoodFile);
  let entries: ReadonlyMap<string, CatalogueEntry>;
  let logged = '';
  let last: { readonly file: TextFile | undefined; readonly parsed: ParsedCatalogue } | undefined;
  let update: { readonly file: TextFile | undefined; readonly parsed: ParsedCatalogue } | undefined;
  let listed = shipped.records;
  accept(lastGood);

  function accept(own: CatalogueRecords): void {
    lastGood = own;
    const all = [...DEMO_CATALOGUE, ...entriesOf(listed, false), ...entriesOf(own, true)];
    entries = new Map(all.map(([id, entry]) => [id, acceptedFiles === undefined ? entry : withAccepted(entry, acceptedFiles)]));
  }

  /** Models of the last read. */
  const catalogue: Catalogue = {
    get: (id) => entries.get(id),
    has: (id) => entries.has(id),
    keys: () => entries.keys(),
    values: () => entries.values(),
    problemsOf(id) {
      if (last === undefined || last.parsed.refused !== undefined) return last?.parsed.refused?.get(id) ?? [];
      return lastGood.has(id) || (!entries.has(id) && canBeId(id)) ? last.parsed.problems : [];
    },
  };
  async function readUpdate(): Promise<void> {
    const file = updated === undefined ? undefined : (await readTextFile(updated.file))?.file;
    if (updated === undefined || (update !== undefined && isSameValue(file, update.file))) return;
    update = { file, parsed: parseFile(file, updated.file, (text) => parseSigned(text, updated.file, updated)) };
    listed = combine(shipped, update.parsed);
    last = undefined;
    accept(lastGood);
  }
  return {
    catalogue,
    acceptedFiles,
    /** Day of the catalogue in force besides `models.toml`. */
    published: () => [shipped.published ?? '', update?.parsed.published ?? ''].toSorted().at(-1),
    /** Reads `models.toml` and the updated catalogue again. Logs each problem once, and returns the current ones. */
    async read(): Promise<readonly SpecProblem[]> {
      await readUpdate();
      const file = await readWhenQuiet(local, options.quietPeriodMs, lastGood.size > 0);
      // Every pass reads the file, which hardly ever changes.
      const before = last !== undefined && isSameValue(file, last.file) ? last.parsed : undefined;
      const parsed = before ?? parseFile(file, local, (text) => parseCatalogue(text, local, new Map([...DEMO_RECORDS, ...listed])));
      last = { file, parsed };
      const own = keepLastGood(parsed, lastGood);
      if (!isSameValue([...own.values()], [...lastGood.values()])) {
        accept(own);
        await storeLastGood(lastGoodFile, own.size === 0 ? undefined : [...own.values()], `entries of "${local}"`, log);
      }
      const problems = [...shipped.problems, ...(update?.parsed.problems ?? []), ...parsed.problems];
      const text = problems.map((problem) => formatProblem(problem)).join('; ');
      if (text !== logged && text !== '') log.warn({}, text);
      logged = text;
      return problems;
    },
    /** Wakes when `models.toml` or the updated catalogue changes. */
    changes(wake: Wake, signal: AbortSignal): void {
      for (const file of [local, ...(updated === undefined ? [] : [updated.file])]) {
        const [directory, names] = [path.dirname(file), [path.basename(file)]];
        watchDirectory({ directory, names, quietPeriodMs: options.quietPeriodMs, log }, () => wake(), signal);
      }
    },
  };
}

function parseFile(file: TextFile | undefined, name: string, parse: (text: string) => ParsedCatalogue): ParsedCatalogue {
  if (file === undefined) return { records: new Map(), problems: [], refused: new Map() };
  if (file.kind === 'text') return parse(file.text);
  const { message, line, column } = file;
  return unreadable({ path: [], message, file: name, line, column });
}

function keepLastGood({ records, refused }: ParsedCatalogue, lastGood: CatalogueRecords): CatalogueRecords {
  if (refused === undefined) return lastGood;
  return new Map([...[...lastGood].filter(([id]) => refused.has(id)), ...records]);
}

/** A half-written file may be valid but lack entries. Some editors remove a file for a moment while they save. */
async function readWhenQuiet(file: string, quietPeriodMs: number, isExpected: boolean): Promise<TextFile | undefined> {
  const deadline = performance.now() + LONGEST_WAIT_MS;
  let awaited = isExpected;
  for (;;) {
    const read = await readTextFile(file);
    const isChanging = read?.changedMeanwhile === true || (read === undefined && awaited);
    const restMs = isChanging ? quietPeriodMs : quietRestMs(read?.writtenAt ?? 0, Date.now(), quietPeriodMs);
    if (restMs <= 0 || performance.now() >= deadline) return read?.file;
    if (read === undefined) awaited = false;
    await sleep(Math.ceil(restMs));
  }
}

async function readLastGood(file: string): Promise<CatalogueRecords> {
  const text = await readRegularFile(file, { mostBytes: LARGE_TEXT_BYTES }).catch(() => '[]');
  const records = z.array(CatalogueRecord).safeParse(parseJson(text)).data ?? [];
  return new Map(records.map((record) => [record.id, record]));
}

/** Reads the catalogue for a short-lived program. */
export async function readCatalogueOnce(options: Omit<CatalogueSourceOptions, 'quietPeriodMs' | 'log'>) {
  const ignored = (): void => undefined;
  const source = await createCatalogueSource({ ...options, quietPeriodMs: 0, log: { info: ignored, warn: ignored } });
  return { problems: await source.read(), ...source };
}

const SIGNATURE = /^# ed25519 ([A-Za-z0-9+/]{86}==)\n?$/;

/**
 * Parses a catalogue that ends with its ed25519 signature: `# ed25519 BASE64`, over everything before that line.
 * `key`: base64 of the SubjectPublicKeyInfo. A text without a valid signature or a day has no entries.
 */
export function parseSigned(text: string, file: string, { key }: { readonly key: string | undefined }): ParsedCatalogue {
  const refuse = (message: string): ParsedCatalogue => unreadable({ path: [], message, file });
  const end = text.lastIndexOf('\n# ed25519 ') + 1;
  const signature = SIGNATURE.exec(text.slice(end))?.[1];
  if (key === undefined || !PUBLIC_KEY.test(key)) return refuse('No public key can verify it; set "SVC_CATALOGUE_KEY"');
  if (signature === undefined) return refuse('It is not signed; its last line must be "# ed25519" and the signature in base64');
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
  if (!verify(null, Buffer.from(text.slice(0, end)), publicKey, Buffer.from(signature, 'base64')))
    return refuse('Its signature is not of the key in "SVC_CATALOGUE_KEY"; use a catalogue of that publisher');
  const parsed = parseCatalogue(text, file, DEMO_RECORDS);
  return parsed.refused !== undefined && parsed.published === undefined ? refuse('It has no key "published"; add its day') : parsed;
}

/** Reserves the ids of the demo models. */
export const DEMO_RECORDS: CatalogueRecords = new Map(
  [...DEMO_CATALOGUE.values()].map(({ id, kind = 'chat' }) => [
    id,
    { id, kind, gated: false, verified: true, sources: [], override: false, files: [] },
  ]),
);

/** Entries of the newer one take precedence; those that only the older one has stay. */
export function combine(one: ParsedCatalogue, other: ParsedCatalogue): CatalogueRecords {
  const isNewer = (other.published ?? '') > (one.published ?? '');
  return new Map(isNewer ? [...one.records, ...other.records] : [...other.records, ...one.records]);
}
