/**
 * Asks the servers of the shipped catalogue whether they still have the files that it names: `node scripts/check-catalogue.ts [ID…]`. It downloads nothing: the
 * Hub states the hash and the size of a file in the headers of its redirect, GitHub in its API; other servers state only the size. Each entry is `verified` (size and
 * hash of every file are those of the catalogue), `changed` (a server has another file, or none), or `unchecked` (a server is away, asks for a token, or states no hash).
 * Exits with 1 if an entry has changed, otherwise with 2 if one is unchecked.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { versionsOf, type CatalogueEntry, type Download, type FileVersion } from '../src/models/catalogue/catalogue.ts';
import { entryOf, parseCatalogue } from '../src/models/catalogue/decide/parse-catalogue.ts';
import { explainRefusal } from '../src/models/decide/explain-refusal.ts';
import { hubHash } from '../src/models/download/decide/judge-response.ts';
import { connectTo, discard, openUrl, type OpenedUrl } from '../src/models/download/open-url.ts';
import { fileUrl, readHubAccess, type HubAccess } from '../src/models/hub/hub-access.ts';
import { codeOf, messageOf } from '../src/platform/error-text.ts';
import { parseJson } from '../src/platform/decide/parse-json.ts';
import { readBody } from '../src/platform/read-body.ts';

const CATALOGUE_FILE = join(import.meta.dirname, '../src/models/catalogue/catalogue.toml');
const ANSWER_WITHIN_MS = 30_000;
/** Of one file, when a server is busy or limits how often it may be asked. */
const ATTEMPTS = 4;
const PAUSE_MS = 1000;
/** A server that asks for more is left for another time. */
const LONGEST_PAUSE_MS = 60_000;
const MOST_BYTES = 4 * 2 ** 20;
const MOST_PAGES = 20;

export type SourceVerdict =
  | { readonly kind: 'verified' }
  | { readonly kind: 'changed'; readonly message: string }
  | { readonly kind: 'unchecked'; readonly message: string; readonly waitMs?: number; readonly again: boolean };

export interface Servers {
  readonly hub: HubAccess;
  readonly github: { readonly api: string; readonly token?: string | undefined };
  /** Pause before the first repetition; it doubles each time. */
  readonly pauseMs?: number;
}

/** Compares an entry with what its server says of the file. Asks again where that may help. */
export async function checkSource(from: Download, servers: Servers): Promise<SourceVerdict> {
  const { pauseMs = PAUSE_MS } = servers;
  for (let attempt = 1; ; attempt += 1) {
    const verdict = await ask(from, servers, AbortSignal.timeout(ANSWER_WITHIN_MS)).catch((error: unknown): SourceVerdict => {
      return { kind: 'unchecked', message: `The server does not answer: ${messageOf(error) || codeOf(error)}`, again: true };
    });
    if (verdict.kind !== 'unchecked' || !verdict.again || attempt === ATTEMPTS) return verdict;
    const waitMs = verdict.waitMs ?? pauseMs * 2 ** (attempt - 1);
    if (waitMs > LONGEST_PAUSE_MS) return verdict;
    await sleep(waitMs);
  }
}

async function ask(from: Download, { hub, github }: Servers, signal: AbortSignal): Promise<SourceVerdict> {
  const [, repository, tag, name] = ASSET.exec(from.url) ?? [];
  if (repository !== undefined && tag !== undefined && name !== undefined) {
    const stated = await askGithub(`${github.api}/repos/${repository}/releases`, { tag, name, token: github.token }, signal);
    return 'kind' in stated ? stated : compare(from, stated);
  }
  await using dispatcher = connectTo(from.url, ANSWER_WITHIN_MS);
  const token = from.repo === undefined ? undefined : await hub.token();
  const bearer = token === undefined ? undefined : { origin: new URL(hub.endpoint).origin, token };
  const opened = await openUrl({ url: from.url, dispatcher, bearer, headers: { range: 'bytes=0-0' } }, signal);
  if (!opened.ok) return { kind: 'changed', message: opened.failure.message };
  const { status, headers, firstHeaders, body } = opened.value;
  discard(body);
  if (status !== 200 && status !== 206) return explainStatus(opened.value, from, hub);
  const size = status === 206 ? /\/([0-9]+)$/.exec(String(headers['content-range'] ?? ''))?.[1] : headers['content-length'];
  return compare(from, { sizeBytes: Number(size), sha256: hubHash(firstHeaders) });
}

const ASSET = /^https:\/\/github\.com\/([^/]+\/[^/]+)\/releases\/download\/([^/]+)\/([^/]+)$/;
const Asset = z.object({ name: z.string(), size: z.int(), digest: z.string().nullish() });

/** A release of models has hundreds of assets, in pages. */
async function askGithub(
  releases: string,
  { tag, name, token }: { readonly tag: string; readonly name: string; readonly token: string | undefined },
  signal: AbortSignal,
): Promise<Partial<FileVersion> | SourceVerdict> {
  await using dispatcher = connectTo(releases, ANSWER_WITHIN_MS);
  const bearer = token === undefined ? undefined : { origin: new URL(releases).origin, token };
  const read = async (url: string): Promise<unknown> => {
    const opened = await openUrl({ url, dispatcher, bearer, headers: { accept: 'application/vnd.github+json' } }, signal);
    if (!opened.ok) throw new Error(opened.failure.message);
    const text = await readBody(opened.value.body, MOST_BYTES);
    if (opened.value.status === 404) return undefined;
    if (opened.value.status !== 200) throw new Error(explainRefusal(opened.value).failure.message);
    return parseJson(text);
  };
  const release = await read(`${releases}/tags/${tag}`);
  if (release === undefined) return { kind: 'changed', message: `GitHub has no release "${tag}"` };
  const { id } = z.object({ id: z.int() }).parse(release);
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const assets = z.array(Asset).parse((await read(`${releases}/${id}/assets?per_page=100&page=${page}`)) ?? []);
    const asset = assets.find((each) => each.name === decodeURIComponent(name));
    if (asset !== undefined)
      return { sizeBytes: asset.size, ...(asset.digest?.startsWith('sha256:') ? { sha256: asset.digest.slice(7) } : {}) };
    if (assets.length < 100) break;
  }
  return { kind: 'changed', message: `The release "${tag}" has no file "${name}"` };
}

interface Stated {
  readonly sizeBytes?: number | undefined;
  readonly sha256?: string | undefined;
}

/** Pure. */
function compare(from: Download, { sizeBytes, sha256 }: Stated): SourceVerdict {
  const ofSize = versionsOf(from).filter((version) => version.sizeBytes === sizeBytes);
  const hash = sha256 === undefined ? '' : ` and the SHA-256 "${sha256}"`;
  if (sizeBytes === undefined || Number.isNaN(sizeBytes))
    return { kind: 'unchecked', message: 'The server does not state the size', again: true };
  if (ofSize.length === 0 || (sha256 !== undefined && !ofSize.some((version) => version.sha256 === sha256)))
    return { kind: 'changed', message: `The server has another file, with ${sizeBytes} bytes${hash}` };
  if (sha256 !== undefined) return { kind: 'verified' };
  return { kind: 'unchecked', message: 'The size is right, and the server does not state the SHA-256', again: false };
}

function explainStatus(opened: OpenedUrl, { repo }: Download, hub: HubAccess): SourceVerdict {
  const isHub = repo !== undefined && opened.headers === opened.firstHeaders;
  const asked = isHub ? { hub: { repo, page: `${hub.endpoint}/${repo}`, sentToken: opened.sentToken } } : {};
  const { failure, waitMs } = explainRefusal({ ...opened, ...asked });
  const { message } = failure;
  // The Hub answers with 401 for a repository that is gone, and for one that needs a token.
  if (failure.kind !== 'retry' && ![401, 403].includes(opened.status)) return { kind: 'changed', message };
  return { kind: 'unchecked', message, again: failure.kind === 'retry', ...(waitMs === undefined ? {} : { waitMs }) };
}

async function shippedEntries(hub: HubAccess): Promise<readonly CatalogueEntry[]> {
  const { records } = parseCatalogue(await readFile(CATALOGUE_FILE, 'utf8'), CATALOGUE_FILE);
  const hubUrl = (repo: string, commit: string, path: string): string => fileUrl(hub.endpoint, repo, commit, path);
  return [...records.values()].map((record) => entryOf(record, { hubUrl, providers: new Set(), isOwn: false }));
}

/** The worst verdict of its files, and why. */
async function checkEntry({ files }: CatalogueEntry, servers: Servers): Promise<readonly [SourceVerdict['kind'], readonly string[]]> {
  const found = new Set<SourceVerdict['kind']>();
  const reasons: string[] = [];
  for (const { path, from } of files) {
    if (from.kind !== 'url') continue;
    const verdict = await checkSource(from, servers);
    found.add(verdict.kind);
    if (verdict.kind !== 'verified') reasons.push(`${path}: ${verdict.message}`);
  }
  return [found.has('changed') ? 'changed' : found.has('unchecked') ? 'unchecked' : 'verified', reasons];
}

async function main(ids: readonly string[]): Promise<number> {
  const github = { api: 'https://api.github.com', token: process.env['GITHUB_TOKEN'] };
  const servers: Servers = { hub: readHubAccess(process.env), github };
  const entries = await shippedEntries(servers.hub);
  const unknown = ids.filter((id) => !entries.some((entry) => entry.id === id));
  for (const id of unknown) console.error(`Correct the id "${id}": the catalogue does not have it`);
  if (unknown.length > 0) return 64;
  const counts = { verified: 0, changed: 0, unchecked: 0 };
  for (const entry of entries.filter(({ id }) => ids.length === 0 || ids.includes(id))) {
    const [verdict, reasons] = await checkEntry(entry, servers);
    counts[verdict] += 1;
    console.log([`${verdict.padEnd(9)}  ${entry.id}`, ...reasons].join('\n             '));
  }
  console.log(`${counts.verified} verified, ${counts.changed} changed, ${counts.unchecked} unchecked`);
  return counts.changed > 0 ? 1 : counts.unchecked > 0 ? 2 : 0;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
