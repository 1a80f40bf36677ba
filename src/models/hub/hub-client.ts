/** Asks the Hub, or a compatible server. Own code, since the npm client drops headers that explain errors (ADR 0056). */
import { z } from 'zod';
import { connectTo, openUrl } from '../download/open-url.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { listQuantisations, chooseFiles, type RepoFile, type Quantisation } from '../decide/choose-files.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import type { HubAccess } from './hub-access.ts';
import type { HubName } from '../decide/parse-model-name.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { pinnedFiles, type Pin } from '../decide/pin.ts';

export interface RepoFacts {
  readonly commit: string;
  readonly isGated: boolean;
  readonly license: string | undefined;
  readonly licenseUrl: string | undefined;
}

export interface HubClient {
  describe(repo: string, signal: AbortSignal): Promise<Result<RepoFacts>>;
  /** Lists all files of a commit. */
  list(repo: string, commit: string, signal: AbortSignal): Promise<Result<readonly RepoFile[]>>;
}

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

interface Page<T> {
  readonly value: T;
  readonly next: string | undefined;
}

export function createHubClient({ endpoint, token }: HubAccess): HubClient {
  async function ask<T>(url: string, repo: string, schema: z.ZodType<T>, signal: AbortSignal): Promise<Result<Page<T>>> {
    const dispatcher = connectTo(url, SILENCE_MS);
    try {
      const own = await token();
      const bearer = own === undefined ? undefined : { origin: new URL(endpoint).origin, token: own };
      const opened = await openUrl({ url, dispatcher, bearer }, signal);
      if (!opened.ok) return opened;
      const { status, headers, body, sentToken } = opened.value;
      const text = await readText(body);
      if (status !== 200) {
        const hub = { page: `${endpoint}/${repo}`, repo, sentToken };
        return { ok: false, failure: explainRefusal({ status, headers, url: opened.value.url, hub }).failure };
      }
      const parsed = schema.safeParse(parseJson(text));
      if (parsed.success) return ok({ value: parsed.data, next: nextLink(headers['link'], url) });
      return fail('retry', 'ModelPullFailed', `The response of "${url}" is not from the Hugging Face Hub; check "HF_ENDPOINT"`);
    } catch (error) {
      if (signal.aborted) throw error;
      const why = messageOf(error) || codeOf(error);
      return fail('retry', 'ModelPullFailed', `"${new URL(url).origin}" does not respond: ${why}; check the network`);
    } finally {
      await dispatcher.destroy().catch(() => undefined);
    }
  }

  return {
    async describe(repo, signal) {
      const asked = await ask(`${endpoint}/api/models/${repo}/revision/main`, repo, Repo, signal);
      return asked.ok ? ok(repoFacts(asked.value.value, `${endpoint}/${repo}`)) : asked;
    },
    async list(repo, commit, signal) {
      const files: RepoFile[] = [];
      let url: string | undefined = `${endpoint}/api/models/${repo}/tree/${commit}?recursive=true`;
      for (let page = 0; url !== undefined && page < MAX_PAGES; page += 1) {
        const asked: Result<Page<z.output<typeof Tree>>> = await ask(url, repo, Tree, signal);
        if (!asked.ok) return asked;
        for (const { type, path, size, lfs } of asked.value.value) {
          if (type === 'file') files.push({ path, sizeBytes: lfs?.size ?? size, sha256: lfs?.oid });
        }
        url = asked.value.next;
      }
      return ok(files);
    },
  };
}

function repoFacts({ sha, gated, tags = [], cardData }: z.output<typeof Repo>, page: string): RepoFacts {
  const stated = cardData?.license;
  const inTags = tags.find((tag) => tag.startsWith('license:'))?.slice('license:'.length);
  const license = (typeof stated === 'string' ? stated : stated?.[0]) ?? inTags;
  // "other" means that the name is in another field.
  const name = license === 'other' ? (cardData?.license_name ?? license) : license;
  const link = cardData?.license_link;
  const isLink = link !== undefined && /^https?:\/\//.test(link);
  return {
    commit: sha,
    isGated: gated !== undefined && gated !== false,
    license: name,
    licenseUrl: isLink ? link : license === undefined ? undefined : page,
  };
}

/** Ignores a link to another server. */
function nextLink(link: string | string[] | undefined, url: string): string | undefined {
  const text = typeof link === 'string' ? link : (link?.[0] ?? '');
  const next = /<([^>]+)>\s*;\s*rel="next"/.exec(text)?.[1];
  if (next === undefined || !URL.canParse(next, url)) return undefined;
  const resolved = new URL(next, url);
  return resolved.origin === new URL(url).origin ? resolved.href : undefined;
}

async function readText(body: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`The response has more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export async function readQuantisations(hub: HubAccess, { repo }: HubName, signal: AbortSignal): Promise<Result<readonly Quantisation[]>> {
  const client = createHubClient(hub);
  const described = await client.describe(repo, signal);
  if (!described.ok) return described;
  const files = await client.list(repo, described.value.commit, signal);
  return files.ok ? ok(listQuantisations(files.value)) : files;
}

export interface NameToResolve {
  readonly id: ModelId;
  readonly name: HubName;
  readonly hub: HubAccess;
  /** Memory for a model whose name leaves the quantisation open. */
  readonly fitsBytes: number | undefined;
}

/** At the newest commit. Stores nothing. */
export async function resolvePin({ id, name, hub, fitsBytes }: NameToResolve, signal: AbortSignal): Promise<Result<Pin>> {
  const client = createHubClient(hub);
  const repo = await client.describe(name.repo, signal);
  if (!repo.ok) return repo;
  const { commit, license, licenseUrl, isGated } = repo.value;
  const files = await client.list(name.repo, commit, signal);
  if (!files.ok) return files;
  const choice = chooseFiles(files.value, name, fitsBytes);
  if (choice.kind === 'none') return fail('stalled', 'ModelMissing', choice.message);
  if (choice.kind === 'too-large') return fail('stalled', 'ModelTooLarge', choice.message);
  const pinned = pinnedFiles({ repo: name.repo, commit, chosen: choice.files });
  if ('problem' in pinned)
    return fail('stalled', 'ModelMissing', `The model cannot be pulled: ${pinned.problem}; use another file or repository`);
  return ok({
    version: 1,
    id,
    files: [...pinned.files],
    isGated,
    ...(license === undefined ? {} : { license }),
    ...(licenseUrl === undefined ? {} : { licenseUrl }),
  });
}
