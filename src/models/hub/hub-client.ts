/** Asks the Hub, or a compatible server. The npm client drops the headers that explain errors (ADR 0056). */
import { z } from 'zod';
import { connectTo, openUrl } from '../download/open-url.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { readBody } from '../../platform/read-body.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { listQuantisations, chooseFiles, type RepoFile, type Quantisation } from '../decide/choose-files.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { bearerOf, type HubAccess } from './hub-access.ts';
import type { HubName } from '../decide/parse-model-name.ts';
import { defined } from '../../schema/pod/kube-fields.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { pinnedFiles, type Pin } from '../decide/pin.ts';

type RepoFacts = Pick<Pin, 'isGated' | 'license' | 'licenseUrl'> & { readonly commit: string; readonly files: readonly RepoFile[] };

const Repo = z.object({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
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
const Tree = z.array(
  z.object({
    type: z.string(),
    path: z.string().max(1000),
    size: z.number().min(0),
    lfs: z.object({ oid: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().min(0) }).optional(),
  }),
);

const SILENCE_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 2 ** 20;
/** Pages have 1000 files. */
const MAX_PAGES = 20;

type Asked<T> = Readonly<{ repo: string; schema: z.ZodType<T> }>;
type Page<T> = Readonly<{ value: T; next: string | undefined }>;

async function ask<T>(hub: HubAccess, url: string, { repo, schema }: Asked<T>, signal: AbortSignal): Promise<Result<Page<T>>> {
  await using dispatcher = connectTo(url, SILENCE_MS);
  try {
    const opened = await openUrl({ url, dispatcher, bearer: await bearerOf(hub) }, signal);
    if (!opened.ok) return opened;
    const { status, headers, body, sentToken } = opened.value;
    const text = await readBody(body, MAX_RESPONSE_BYTES);
    if (status !== 200) {
      const about = { page: `${hub.endpoint}/${repo}`, repo, sentToken };
      return { ok: false, failure: explainRefusal({ status, headers, url: opened.value.url, hub: about }).failure };
    }
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) return ok({ value: parsed.data, next: nextLink(headers['link'], url) });
    return fail('retry', 'ModelPullFailed', `The response of "${url}" is not from the Hugging Face Hub; check "HF_ENDPOINT"`);
  } catch (error) {
    if (signal.aborted) throw error;
    const why = messageOf(error) || codeOf(error);
    return fail('retry', 'ModelPullFailed', `"${new URL(url).origin}" does not respond: ${why}; check the network`);
  }
}

async function readRepo(hub: HubAccess, repo: string, signal: AbortSignal): Promise<Result<RepoFacts>> {
  const described = await ask(hub, `${hub.endpoint}/api/models/${repo}/revision/main`, { repo, schema: Repo }, signal);
  if (!described.ok) return described;
  const files: RepoFile[] = [];
  let url: string | undefined = `${hub.endpoint}/api/models/${repo}/tree/${described.value.value.sha}?recursive=true`;
  for (let page = 0; url !== undefined && page < MAX_PAGES; page += 1) {
    const asked: Result<Page<z.output<typeof Tree>>> = await ask(hub, url, { repo, schema: Tree }, signal);
    if (!asked.ok) return asked;
    for (const { type, path, size, lfs } of asked.value.value)
      if (type === 'file') files.push({ path, sizeBytes: lfs?.size ?? size, sha256: lfs?.oid });
    url = asked.value.next;
  }
  return ok({ files, ...repoFacts(described.value.value, `${hub.endpoint}/${repo}`) });
}

function repoFacts({ sha, gated, tags = [], cardData }: z.output<typeof Repo>, page: string): Omit<RepoFacts, 'files'> {
  const stated = cardData?.license;
  const inTags = tags.find((tag) => tag.startsWith('license:'))?.slice('license:'.length);
  const license = (typeof stated === 'string' ? stated : stated?.[0]) ?? inTags;
  // "other" means that the name is in another field.
  const name = license === 'other' ? (cardData?.license_name ?? license) : license;
  const link = cardData?.license_link;
  const licenseUrl = link !== undefined && /^https?:\/\//.test(link) ? link : license === undefined ? undefined : page;
  return { commit: sha, isGated: gated !== undefined && gated !== false, ...defined({ license: name, licenseUrl }) };
}

function nextLink(link: string | string[] | undefined, url: string): string | undefined {
  const text = typeof link === 'string' ? link : (link?.[0] ?? '');
  const next = /<([^>]+)>\s*;\s*rel="next"/.exec(text)?.[1];
  if (next === undefined || !URL.canParse(next, url)) return undefined;
  const resolved = new URL(next, url);
  return resolved.origin === new URL(url).origin ? resolved.href : undefined;
}

export async function readQuantisations(hub: HubAccess, { repo }: HubName, signal: AbortSignal): Promise<Result<readonly Quantisation[]>> {
  const read = await readRepo(hub, repo, signal);
  return read.ok ? ok(listQuantisations(read.value.files)) : read;
}

interface NameToResolve {
  readonly id: ModelId;
  readonly name: HubName;
  readonly hub: HubAccess;
  /** Memory for a model whose name leaves the quantisation open. */
  readonly fitsBytes: number | undefined;
}

/** Resolves to the newest commit. Stores nothing. */
export async function resolvePin({ id, name, hub, fitsBytes }: NameToResolve, signal: AbortSignal): Promise<Result<Pin>> {
  const read = await readRepo(hub, name.repo, signal);
  if (!read.ok) return read;
  const { commit, files, ...facts } = read.value;
  const choice = chooseFiles(files, name, fitsBytes);
  if (choice.kind === 'none') return fail('stalled', 'ModelMissing', choice.message);
  if (choice.kind === 'too-large') return fail('stalled', 'ModelTooLarge', choice.message);
  const pinned = pinnedFiles({ repo: name.repo, commit, chosen: choice.files });
  if ('problem' in pinned)
    return fail('stalled', 'ModelMissing', `The model cannot be pulled: ${pinned.problem}; use another file or repository`);
  return ok({ version: 1, id, files: [...pinned.files], ...facts });
}
