/** Asks the Hub, or a compatible server. The npm client drops the headers that explain errors (ADR 0056). */
import { z } from 'zod';
import { connectTo, openUrl } from '../download/open-url.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { readBody } from '../../platform/read-body.ts';
import { fail, ok, type Failure, type Result } from '../../schema/words/failure.ts';
import { listQuantisations, chooseFiles, type RepoFile, type Quantisation } from '../decide/choose-files.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { Described, filesIn, isGated, licenseOf, Tree } from '../decide/read-listing.ts';
import { bearerOf, type HubAccess } from './hub-access.ts';
import type { HubName } from '../decide/parse-model-name.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { pinnedFiles, type Pin } from '../decide/pin.ts';

type RepoFacts = Pick<Pin, 'isGated' | 'license' | 'licenseUrl'> & { readonly commit: string; readonly files: readonly RepoFile[] };

const Repo = Described.extend({ sha: z.string().regex(/^[0-9a-f]{40}$/) });

const SILENCE_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 2 ** 20;
/** Pages have 1000 files. */
const MAX_PAGES = 20;

interface Asked<T> {
  /** Undefined for a search. */
  readonly repo?: string;
  readonly schema: z.ZodType<T>;
  readonly limitBytes?: number;
  /** Refuses redirects to another server. */
  readonly stays?: boolean;
}
type Page<T> = Readonly<{ value: T; next: string | undefined }>;
/** `waitMs`: as the Hub asks for. */
type AskedPage<T> = Result<Page<T>> | Readonly<{ ok: false; failure: Failure; waitMs?: number }>;

export async function ask<T>(hub: HubAccess, url: string, asked: Asked<T>, signal: AbortSignal): Promise<AskedPage<T>> {
  const { repo, schema, limitBytes = MAX_RESPONSE_BYTES, stays } = asked;
  await using dispatcher = connectTo(url, SILENCE_MS);
  try {
    const opened = await openUrl({ url, dispatcher, bearer: await bearerOf(hub), stays }, signal);
    if (!opened.ok) return opened;
    const { status, headers, body, sentToken } = opened.value;
    const text = await readBody(body, limitBytes);
    if (status !== 200) {
      const about = { page: repo === undefined ? hub.endpoint : `${hub.endpoint}/${repo}`, repo, sentToken };
      return { ok: false, ...explainRefusal({ status, headers, url: opened.value.url, hub: about }) };
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
    files.push(...filesIn(asked.value.value));
    url = asked.value.next;
  }
  return ok({ files, ...repoFacts(described.value.value, `${hub.endpoint}/${repo}`) });
}

function repoFacts({ sha, ...described }: z.output<typeof Repo>, page: string): Omit<RepoFacts, 'files'> {
  return { commit: sha, isGated: isGated(described), ...licenseOf(described, page) };
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
