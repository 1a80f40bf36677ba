/**
 * A pin: the exact files that a name was resolved to. It is stored before the first byte is fetched, so a download
 * resumed weeks later gets the same version, and a present model needs no network. Pure.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { z } from 'zod';
import { MODEL_ID_PATTERN } from '../../schema/words/name-rules.ts';
import { ModelId, ProviderName } from '../../schema/words/names.ts';
import { stemOf, type ChosenFiles } from './choose-files.ts';
import type { ModelContents } from '../../providers/provider.ts';
import { defined } from '../../schema/pod/kube-fields.ts';

/** Longer than a model id: owner, repository, model and file together. */
const StorePath = z.string().max(600).regex(new RegExp(MODEL_ID_PATTERN));

const PinnedFile = z.object({
  path: StorePath,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.int().min(0),
  /** Set for a rolling source: other versions that are accepted. */
  others: z.array(z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), sizeBytes: z.int().min(0) })).optional(),
  from: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('hub'), repo: z.string(), commit: z.string(), path: z.string() }),
    /** `repo`: `owner/repo`, if the address is on the Hub. */
    z.object({ kind: z.literal('url'), url: z.string(), repo: z.string().optional() }),
    /** Imported; cannot be fetched again. */
    z.object({ kind: z.literal('import'), tool: z.string() }),
  ]),
  /** For an archive, `path` is the directory of its files. */
  archive: z.object({ format: z.literal('tar.bz2'), unpackedBytes: z.int().min(1).optional() }).optional(),
});
export type PinnedFile = z.output<typeof PinnedFile>;

export const Pin = z.object({
  version: z.literal(1),
  id: ModelId,
  /** The server loads the first one. */
  files: z.array(PinnedFile).min(1).max(1000),
  provider: ProviderName.optional(),
  /** The directory that the server loads, relative to the store. Default: the first file. */
  directory: StorePath.optional(),
  license: z.string().optional(),
  licenseUrl: z.string().optional(),
  /** The Hub requires its terms to be accepted. */
  isGated: z.boolean().default(false),
});
export type Pin = z.output<typeof Pin>;

/** A hash, since an id may be longer than a file name. */
export const pinPath = (id: ModelId): string => `${PINS_DIRECTORY}/${createHash('sha256').update(id).digest('hex').slice(0, 40)}.json`;

/** Passes a pin as JSON to a program that only fetches. */
export const PIN_VARIABLE = 'SVC_MODEL_PIN';
export const PIN_KEY = 'pin';

export const PINS_DIRECTORY = '.svc/pins';

type HubFiles = Readonly<{ repo: string; commit: string; chosen: ChosenFiles }>;

/** One directory per model, because a projector belongs to the model in its directory. */
export function pinnedFiles({ repo, commit, chosen }: HubFiles): { readonly files: readonly PinnedFile[] } | { readonly problem: string } {
  const directory = `hf/${repo}/${stemOf(chosen.model[0].path)}`;
  const files: PinnedFile[] = [];
  for (const file of [...chosen.model, ...(chosen.projector === undefined ? [] : [chosen.projector])]) {
    const path = StorePath.safeParse(`${directory}/${basename(file.path)}`);
    if (file.sha256 === undefined) return { problem: `"${repo}" does not state the SHA-256 of "${file.path}"` };
    if (!path.success) return { problem: `the name "${file.path}" in "${repo}" has characters that the model store does not allow` };
    files.push({ path: path.data, sha256: file.sha256, sizeBytes: file.sizeBytes, from: { kind: 'hub', repo, commit, path: file.path } });
  }
  return { files };
}

/** Values in the files take precedence. Some files are incomplete: headers of embedding models may lack the pooling. */
export function completeContents(found: ModelContents | undefined, stated: ModelContents | undefined): ModelContents | undefined {
  if (stated === undefined) return found;
  return { ...stated, ...defined(found ?? {}) };
}
