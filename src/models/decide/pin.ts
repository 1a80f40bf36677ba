/**
 * What a name was resolved to: the exact files, at one commit, with their hashes. A pin is written before the first byte is fetched and stays in the store, so a
 * download that is resumed weeks later still fetches the same version, and a model that is there needs no network. Pure.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { MODEL_ID_PATTERN } from '../../schema/words/name-rules.ts';
import { ModelId } from '../../schema/words/names.ts';
import { PROVIDER_KIND_NAMES } from '../../schema/slot/provider-kinds.ts';
import { stemOf, type ChosenFiles, type RepoFile } from './choose-files.ts';
import type { ModelContents } from '../../providers/provider.ts';

/** As a model id, but longer: owner, repository, model and file together may be. */
const StorePath = z.string().max(600).regex(new RegExp(MODEL_ID_PATTERN));

const PinnedFile = z.object({
  /** Relative to the root of the store. */
  path: StorePath,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.int().min(0),
  from: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('hub'), repo: z.string(), commit: z.string(), path: z.string() }),
    /** `repo`: the repository on the Hub, as `owner/repo`, if the address is there. */
    z.object({ kind: z.literal('url'), url: z.string(), repo: z.string().optional() }),
    /** It was imported, and cannot be fetched again. */
    z.object({ kind: z.literal('import'), tool: z.string() }),
  ]),
  /** The file is an archive, and `path` the directory in which its files are kept. */
  archive: z.object({ format: z.literal('tar.bz2'), unpackedBytes: z.int().min(1).optional() }).optional(),
});
export type PinnedFile = z.output<typeof PinnedFile>;

export const Pin = z.object({
  version: z.literal(1),
  id: ModelId,
  /** The server loads the first one. */
  files: z.array(PinnedFile).min(1).max(1000),
  /** Default: `gguf`. */
  provider: z.enum(PROVIDER_KIND_NAMES).optional(),
  /** What the server loads, if that is the directory of the files. Relative to the root of the store. */
  directory: StorePath.optional(),
  license: z.string().optional(),
  licenseUrl: z.string().optional(),
  /** The Hub itself has asked for its terms to be accepted. */
  isGated: z.boolean().default(false),
});
export type Pin = z.output<typeof Pin>;

/** Returns the path of a pin, relative to the root of the store. A hash, since an id may be longer than the name of a file. */
export function pinPath(id: ModelId): string {
  return `${PINS_DIRECTORY}/${createHash('sha256').update(id).digest('hex').slice(0, 40)}.json`;
}

/** The variable in which a program that only fetches gets its pin, as JSON. */
export const PIN_VARIABLE = 'SVC_MODEL_PIN';
/** The key of the pin in the object of a cluster that keeps it. */
export const PIN_KEY = 'pin';

/** Relative to the root of the store. */
export const PINS_DIRECTORY = '.svc/pins';

interface HubFiles {
  readonly repo: string;
  readonly commit: string;
  readonly chosen: ChosenFiles;
}

/**
 * Returns where the files of a model from the Hub are kept: `hf/<owner>/<repo>/<model>/<file>`. One directory for each model of a repository, because a projector
 * belongs to the model in its directory. Undefined, with a file that prevents it, if one has no hash or a name that the store cannot have.
 */
export function pinnedFiles({ repo, commit, chosen }: HubFiles): { readonly files: readonly PinnedFile[] } | { readonly problem: string } {
  const directory = `hf/${repo}/${stemOf(chosen.model[0].path)}`;
  const files: PinnedFile[] = [];
  for (const file of [...chosen.model, ...(chosen.projector === undefined ? [] : [chosen.projector])]) {
    const path = StorePath.safeParse(`${directory}/${baseName(file)}`);
    if (file.sha256 === undefined) return { problem: `"${repo}" does not state the SHA-256 of "${file.path}"` };
    if (!path.success) return { problem: `the name "${file.path}" in "${repo}" has characters that the model store does not allow` };
    files.push({ path: path.data, sha256: file.sha256, sizeBytes: file.sizeBytes, from: { kind: 'hub', repo, commit, path: file.path } });
  }
  return { files };
}

function baseName({ path }: RepoFile): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Completes what the files of a model say by what the catalogue states. The files have the last word. Pure. */

/** Some files do not say everything: the header of some embedding models does not say how to pool. */
export function completeContents(found: ModelContents | undefined, stated: ModelContents | undefined): ModelContents | undefined {
  if (stated === undefined) return found;
  return { ...stated, ...Object.fromEntries(Object.entries(found ?? {}).filter(([, value]) => value !== undefined)) };
}
