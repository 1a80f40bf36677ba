/**
 * Files that a user has accepted although the catalogue does not list them: a publisher has replaced the file at a
 * rolling source. The record outlives restarts, so that a download later gets the same file or fails.
 */
import { z } from 'zod';
import { LARGE_TEXT_BYTES, readRegularFile } from '../../files/regular-file.ts';
import { writeJsonAtomically } from '../../files/write-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { bearerOf, type HubAccess } from '../hub/hub-access.ts';
import { versionsOf, type CatalogueEntry, type FileVersion } from './catalogue.ts';

/** Name in the state directory. */
export const ACCEPTED_FILES = 'accepted-files.json';

const AcceptedFile = z.object({
  url: z.string(),
  sizeBytes: z.int().min(1),
  /** Empty until the file was downloaded, if its server does not state it. */
  sha256: z.string().regex(/^(?:[0-9a-f]{64})?$/),
  at: z.string(),
});
type AcceptedFile = z.output<typeof AcceptedFile>;

export interface AcceptedFiles {
  /** Newest first. */
  of(url: string): readonly FileVersion[];
  /** Replaces a record of the same file without SHA-256. */
  record(file: FileVersion & { readonly url: string }): Promise<void>;
}

export async function openAcceptedFiles(file: string, onChange: () => void): Promise<AcceptedFiles> {
  const text = await readRegularFile(file, { mostBytes: LARGE_TEXT_BYTES }).catch(() => '[]');
  let records: readonly AcceptedFile[] = z.array(AcceptedFile).safeParse(parseJson(text)).data ?? [];
  return {
    of: (url) => records.filter((each) => each.url === url).map(({ sha256, sizeBytes }) => ({ sha256, sizeBytes })),
    async record({ url, sha256, sizeBytes }) {
      const rest = records.filter((each) => each.url !== url || (each.sha256 !== '' && each.sha256 !== sha256));
      records = [{ url, sha256, sizeBytes, at: new Date().toISOString() }, ...rest];
      await writeJsonAtomically(file, records, 0o644, { sync: true });
      onChange();
    },
  };
}

/** What a user has accepted comes first: it is what the server had last. */
export function withAccepted(entry: CatalogueEntry, accepted: AcceptedFiles): CatalogueEntry {
  const [first, ...more] = entry.files.map((file) => {
    const { from } = file;
    const [newest, ...older] = from.kind === 'url' && from.others !== undefined ? accepted.of(from.url) : [];
    if (newest === undefined || from.kind !== 'url') return file;
    return { ...file, from: { ...from, ...newest, others: [...older, ...versionsOf(from)] } };
  });
  return first === undefined ? entry : { ...entry, files: [first, ...more] };
}

/**
 * Accepts what the servers of rolling files have now, for a model that is not in the store. A server that states no
 * hash may have another file of the same size.
 */
export async function acceptNewFiles(
  { acceptedFiles, hub }: { readonly acceptedFiles?: AcceptedFiles | undefined; readonly hub: HubAccess },
  { id, files }: CatalogueEntry,
  signal: AbortSignal,
): Promise<Result<readonly (FileVersion & { readonly url: string })[]>> {
  const rolling = files.flatMap(({ from }) => (from.kind === 'url' && from.others !== undefined ? [from] : []));
  if (acceptedFiles === undefined || rolling.length === 0)
    return fail('stalled', 'ModelMissing', `The files of "${id}" cannot change at their source; pull it without "--accept-new"`);
  const { askSource } = await import('../download/open-url.ts');
  const found: (FileVersion & { readonly url: string })[] = [];
  for (const from of rolling) {
    const stated = await askSource(from.url, from.repo === undefined ? undefined : await bearerOf(hub), signal);
    if (!stated.ok) return stated;
    if (!versionsOf(from).some(({ sha256 }) => sha256 === stated.value.sha256 && sha256 !== ''))
      found.push({ url: from.url, ...stated.value });
  }
  for (const file of found) await acceptedFiles.record(file);
  return ok(found);
}
