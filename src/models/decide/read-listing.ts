/** Reads what the Hub says about repositories: licences, files, results of searches. The input is untrusted. Pure. */
import { z } from 'zod';
import { defined } from '../../schema/pod/kube-fields.ts';
import { ModelId } from '../../schema/words/names.ts';
import { draftOf, nameModels, type NamedModel, type RepoFile } from './choose-files.ts';
import { parseHubName } from './parse-model-name.ts';

export const Described = z.object({
  gated: z.union([z.boolean(), z.string()]).optional(),
  tags: z.array(z.string()).optional(),
  cardData: z
    .object({
      license: z.union([z.string(), z.array(z.string())]).optional(),
      license_name: z.string().optional(),
      license_link: z.string().optional(),
    })
    .nullish(),
});
type Described = z.output<typeof Described>;

export const Tree = z.array(
  z.object({
    type: z.string(),
    path: z.string().max(1000),
    size: z.number().min(0),
    lfs: z.object({ oid: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().min(0) }).optional(),
  }),
);

export function filesIn(tree: z.output<typeof Tree>): readonly RepoFile[] {
  return tree.flatMap(({ type, path, size, lfs }) => (type === 'file' ? [{ path, sizeBytes: lfs?.size ?? size, sha256: lfs?.oid }] : []));
}

export const isGated = ({ gated }: Pick<Described, 'gated'>): boolean => gated !== undefined && gated !== false;

/** `page`: address of the repository. */
export function licenseOf({ tags = [], cardData }: Described, page: string): { readonly license?: string; readonly licenseUrl?: string } {
  const stated = cardData?.license;
  const inTags = tags.find((tag) => tag.startsWith('license:'))?.slice('license:'.length);
  const license = (typeof stated === 'string' ? stated : stated?.[0]) ?? inTags;
  // "other" means that the name is in another field.
  const name = license === 'other' ? (cardData?.license_name ?? license) : license;
  const link = cardData?.license_link;
  const licenseUrl = link !== undefined && /^https?:\/\//.test(link) ? link : license === undefined ? undefined : page;
  return defined({ license: name, licenseUrl });
}

const Count = z.int().min(0).catch(0);
const Found = Described.extend({
  id: z.string().max(200),
  private: z.boolean().default(false),
  downloads: Count,
  likes: Count,
  pipeline_tag: z
    .string()
    .regex(/^[a-z0-9-]{1,60}$/)
    .optional()
    .catch(undefined),
});

export interface FoundRepo {
  /** `owner/repo`. */
  readonly repo: string;
  readonly url: string;
  readonly downloads: number;
  readonly likes: number;
  readonly task: string | undefined;
  readonly license: string | undefined;
  readonly licenseUrl: string | undefined;
  readonly isGated: boolean;
}

const LONGEST_LICENSE = 100;
const LONGEST_URL = 500;

/**
 * Leaves out entries with a mistake, private repositories, which not every reader may know of, and names that no slot
 * takes.
 */
export function readFound(entries: readonly unknown[], endpoint: string, limit: number): readonly FoundRepo[] {
  const found = entries.slice(0, limit).flatMap((entry): FoundRepo[] => {
    const { success, data } = Found.safeParse(entry);
    if (!success || data.private) return [];
    const { id, downloads, likes, pipeline_tag: task } = data;
    const parsed = parseHubName(`hf:${id}`);
    if (parsed.kind !== 'hub' || parsed.name.repo !== id) return [];
    const url = `${endpoint}/${id}`;
    const { license, licenseUrl } = licenseOf(data, url);
    const name = license?.replaceAll(/\p{C}/gu, ' ').trim().slice(0, LONGEST_LICENSE);
    const link = licenseUrl !== undefined && licenseUrl.length <= LONGEST_URL && URL.canParse(licenseUrl) ? new URL(licenseUrl).href : url;
    return [
      { repo: id, url, downloads, likes, task, license: name, licenseUrl: name === undefined ? undefined : link, isGated: isGated(data) },
    ];
  });
  return [...new Map(found.map((each) => [each.repo, each])).values()];
}

/** The largest repositories have some 400 files of models. */
const MOST_FILES = 500;
const LONGEST_PATH = 200;
const MOST_MODELS = 40;

/** What can be pulled of a repository. */
export interface RepoModels {
  readonly models: readonly NamedModel[];
  /** Name of a file for speculative decoding. */
  readonly draft: string | undefined;
}

/** Leaves out files whose names no slot takes, and those without a checksum, which cannot be pulled. */
export function readModels(repo: string, tree: z.output<typeof Tree>): RepoModels {
  const uriOf = (path: string): string => `hf:${repo}/${path}`;
  const usable = filesIn(tree).filter(
    ({ path, sha256 }) =>
      sha256 !== undefined && path.length <= LONGEST_PATH && /\.gguf$/i.test(path) && ModelId.safeParse(uriOf(path)).success,
  );
  const files = usable.slice(0, MOST_FILES);
  const draft = draftOf(files);
  return { models: nameModels(repo, files, MOST_MODELS), draft: draft && uriOf(draft.path) };
}
