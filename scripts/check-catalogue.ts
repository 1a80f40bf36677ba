/**
 * Asks the servers of the shipped catalogue whether they still have the files that it names: `node scripts/check-catalogue.ts [ID…]`. It downloads nothing: the
 * Hub states the hash and the size of a file in the headers of its redirect, other servers only the size. Exits with 1 if an entry is out of date, and with 2 if no
 * entry is known to be, but some could not be checked: a server that is away, or asks for a token, says nothing of the entry.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CatalogueEntry, Download } from '../src/models/catalogue/catalogue.ts';
import { entryOf, parseCatalogue } from '../src/models/catalogue/decide/parse-catalogue.ts';
import { explainRefusal } from '../src/models/decide/explain-refusal.ts';
import { judgeResponse } from '../src/models/download/decide/judge-response.ts';
import { fileUrl, readHubAccess, type HubAccess } from '../src/models/hub/hub-access.ts';
import { connectTo, discard, openUrl, type OpenedUrl } from '../src/models/download/open-url.ts';
import { codeOf, messageOf } from '../src/platform/error-text.ts';
import type { Failure } from '../src/schema/words/failure.ts';

const CATALOGUE_FILE = join(import.meta.dirname, '../src/models/catalogue/catalogue.toml');
const ANSWER_WITHIN_MS = 30_000;
/** Of one file, when a server is busy or limits how often it may be asked. */
const ATTEMPTS = 4;
const PAUSE_MS = 1000;
/** A server that asks for more is left for another time. */
const LONGEST_PAUSE_MS = 60_000;

export type SourceVerdict =
  | { readonly kind: 'right' }
  /** The entry is out of date. */
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'unchecked'; readonly message: string; readonly waitMs?: number; readonly again: boolean };

/** Compares an entry with what its server says of the file. Asks again where that may help; `pauseMs` is the first pause, which doubles each time. */
export async function checkSource(from: Download, hub: HubAccess, pauseMs = PAUSE_MS): Promise<SourceVerdict> {
  for (let attempt = 1; ; attempt += 1) {
    const verdict = await askSource(from, hub, AbortSignal.timeout(ANSWER_WITHIN_MS));
    if (verdict.kind !== 'unchecked' || !verdict.again || attempt === ATTEMPTS) return verdict;
    const waitMs = verdict.waitMs ?? pauseMs * 2 ** (attempt - 1);
    if (waitMs > LONGEST_PAUSE_MS) return verdict;
    await sleep(waitMs);
  }
}

async function askSource(from: Download, hub: HubAccess, signal: AbortSignal): Promise<SourceVerdict> {
  const dispatcher = connectTo(from.url, ANSWER_WITHIN_MS);
  try {
    const token = from.repo === undefined ? undefined : await hub.token();
    const bearer = token === undefined ? undefined : { origin: new URL(hub.endpoint).origin, token };
    const opened = await openUrl({ url: from.url, dispatcher, bearer, headers: { range: 'bytes=0-0' } }, signal);
    if (!opened.ok) return judgeFailure(opened.failure);
    discard(opened.value.body);
    const verdict = judgeResponse(opened.value, { ...from, from: 0 });
    if (verdict.kind === 'accept') return { kind: 'right' };
    if (verdict.kind === 'refused') return explainStatus(opened.value, from, hub);
    const sizeBytes = statedSize(opened.value);
    const isWrong = verdict.kind === 'other-file' || (sizeBytes !== undefined && sizeBytes !== from.sizeBytes);
    return isWrong ? { kind: 'wrong', message: verdict.message } : { kind: 'unchecked', message: verdict.message, again: true };
  } catch (error) {
    return { kind: 'unchecked', message: `The server does not answer: ${messageOf(error) || codeOf(error)}`, again: true };
  } finally {
    await dispatcher.destroy().catch(() => undefined);
  }
}

function judgeFailure({ kind, message }: Failure): SourceVerdict {
  return kind === 'retry' ? { kind: 'unchecked', message, again: true } : { kind: 'wrong', message };
}

/** Of the whole file. */
function statedSize({ status, headers }: OpenedUrl): number | undefined {
  const size = status === 206 ? /\/([0-9]+)$/.exec(String(headers['content-range'] ?? ''))?.[1] : headers['content-length'];
  return typeof size === 'string' ? Number(size) : undefined;
}

function explainStatus(opened: OpenedUrl, { repo }: Download, hub: HubAccess): SourceVerdict {
  const isHub = repo !== undefined && opened.headers === opened.firstHeaders;
  const asked = isHub ? { hub: { repo, page: `${hub.endpoint}/${repo}`, sentToken: opened.sentToken } } : {};
  const { failure, waitMs } = explainRefusal({ ...opened, ...asked });
  const { message } = failure;
  // The Hub answers with 401 for a repository that is gone, and for one that needs a token.
  if (failure.kind !== 'retry' && ![401, 403].includes(opened.status)) return { kind: 'wrong', message };
  return { kind: 'unchecked', message, again: failure.kind === 'retry', ...(waitMs === undefined ? {} : { waitMs }) };
}

async function shippedEntries(hub: HubAccess): Promise<readonly CatalogueEntry[]> {
  const { records } = parseCatalogue(await readFile(CATALOGUE_FILE, 'utf8'), CATALOGUE_FILE);
  const hubUrl = (repo: string, commit: string, path: string): string => fileUrl(hub.endpoint, repo, commit, path);
  return [...records.values()].map((record) => entryOf(record, { hubUrl, providers: new Set(), isOwn: false }));
}

const WORDS = { right: 'ok       ', wrong: 'PROBLEM  ', unchecked: 'UNCHECKED' } as const;

async function main(ids: readonly string[]): Promise<number> {
  const hub = readHubAccess(process.env);
  const entries = await shippedEntries(hub);
  const unknown = ids.filter((id) => !entries.some((entry) => entry.id === id));
  for (const id of unknown) console.error(`Correct the id "${id}": the catalogue does not have it`);
  if (unknown.length > 0) return 64;
  const found = new Set<SourceVerdict['kind']>();
  for (const { id, files } of entries.filter((entry) => ids.length === 0 || ids.includes(entry.id))) {
    for (const { path, from } of files) {
      if (from.kind !== 'url') continue;
      const verdict = await checkSource(from, hub);
      found.add(verdict.kind);
      console.log(`${WORDS[verdict.kind]}  ${id}  ${path}${verdict.kind === 'right' ? '' : `: ${verdict.message}`}`);
    }
  }
  return found.has('wrong') ? 1 : found.has('unchecked') ? 2 : 0;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
