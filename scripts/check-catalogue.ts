/**
 * Asks the servers of the shipped catalogue whether they still have the files that it names: `node scripts/check-catalogue.ts [ID…]`. It downloads nothing: the
 * Hub states the hash and the size of a file in the headers of its redirect, other servers only the size. Exits with 1 if an entry is out of date.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CatalogueEntry, Download } from '../src/models/catalogue.ts';
import { entryOf } from '../src/models/decide/catalogue-entry.ts';
import { judgeResponse } from '../src/models/decide/judge-response.ts';
import { parseCatalogue } from '../src/models/decide/parse-catalogue.ts';
import { fileUrl, readHubAccess, type HubAccess } from '../src/models/hub/hub-access.ts';
import { connectTo } from '../src/models/pull/connect-to.ts';
import { discard, openUrl } from '../src/models/pull/open-url.ts';

const CATALOGUE_FILE = join(import.meta.dirname, '../src/models/catalogue.toml');
const ANSWER_WITHIN_MS = 30_000;

/** Returns what is wrong with a file at its source, or undefined. */
export async function checkSource(from: Download, hub: HubAccess, signal: AbortSignal): Promise<string | undefined> {
  const dispatcher = connectTo(from.url, ANSWER_WITHIN_MS);
  try {
    const token = from.repo === undefined ? undefined : await hub.token();
    const bearer = token === undefined ? undefined : { origin: new URL(hub.endpoint).origin, token };
    const opened = await openUrl({ url: from.url, dispatcher, bearer, headers: { range: 'bytes=0-0' } }, signal);
    if (!opened.ok) return opened.failure.message;
    discard(opened.value.body);
    const verdict = judgeResponse(opened.value, { ...from, from: 0 });
    if (verdict.kind === 'accept') return undefined;
    return verdict.kind === 'refused' ? `The server answers with status ${opened.value.status}` : verdict.message;
  } catch (error) {
    return `The server does not answer: ${String(error)}`;
  } finally {
    void dispatcher.destroy();
  }
}

async function shippedEntries(hub: HubAccess): Promise<readonly CatalogueEntry[]> {
  const { records } = parseCatalogue(await readFile(CATALOGUE_FILE, 'utf8'), CATALOGUE_FILE);
  const hubUrl = (repo: string, commit: string, path: string): string => fileUrl(hub.endpoint, repo, commit, path);
  return [...records.values()].map((record) => entryOf(record, { hubUrl, providers: new Set(), isOwn: false }));
}

async function main(ids: readonly string[]): Promise<void> {
  const hub = readHubAccess(process.env);
  const entries = await shippedEntries(hub);
  for (const { id, files } of entries.filter((entry) => ids.length === 0 || ids.includes(entry.id))) {
    for (const { path, from } of files) {
      const problem = from.kind === 'url' ? await checkSource(from, hub, AbortSignal.timeout(ANSWER_WITHIN_MS)) : undefined;
      console.log(`${problem === undefined ? 'ok     ' : 'PROBLEM'}  ${id}  ${path}${problem === undefined ? '' : `: ${problem}`}`);
      if (problem !== undefined) process.exitCode = 1;
    }
  }
}

if (import.meta.main) await main(process.argv.slice(2));
