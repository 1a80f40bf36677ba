/**
 * Searches the Hub for repositories with GGUF files (`GET /api/models`), and lists the files of each, since a search
 * returns no sizes. Answers are kept for some minutes; the Hub permits an address without a token 500 requests in five.
 */
import { z } from 'zod';
import { createSemaphore } from '../../platform/semaphore.ts';
import { fail, ok, type Failure, type Result } from '../../schema/words/failure.ts';
import { readFound, readModels, Tree, type FoundRepo, type RepoModels } from '../decide/read-listing.ts';
import type { HubAccess } from './hub-access.ts';
import { ask } from './hub-client.ts';

export interface HubQuery {
  readonly text: string;
  /** Repositories. */
  readonly limit: number;
  /** `next` of the page before. */
  readonly cursor: string | undefined;
}

/** `problem`: why files are missing. */
export type RepoResult = FoundRepo & RepoModels & { readonly problem: string | undefined };

export interface HubPage {
  readonly found: readonly RepoResult[];
  readonly next: string | undefined;
}

export type SearchHub = (query: HubQuery) => Promise<Result<HubPage>>;

const FIELDS = ['cardData', 'downloads', 'gated', 'likes', 'pipeline_tag', 'private', 'tags'];
/** Cards of models have up to some 10 KB. */
const LIST_BYTES = 4 * 2 ** 20;
/** 1000 files on a page. */
const TREE_BYTES = 2 * 2 ** 20;
const LIST_MS = 10_000;
const TREES_MS = 15_000;
const TREES_AT_ONCE = 4;
const SEARCHES_AT_ONCE = 4;
const KEPT_ANSWERS = 16;
const KEPT_MS = 5 * 60_000;
/** Failures, and answers with missing files. */
const KEPT_INCOMPLETE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
const CURSOR = /^[\x21-\x7e]{1,1000}$/;

/** `now`: milliseconds on a monotonic clock. Callers share a search, so none can abort it; it ends within 25 s. */
export function createHubSearch(hub: HubAccess, now: () => number): SearchHub {
  const answers = new Map<string, { readonly result: Promise<Result<HubPage>>; until: number }>();
  let pause: { readonly failure: Failure; readonly until: number } | undefined;
  let running = 0;

  function pauseFor(failure: Failure, waitMs: number | undefined): void {
    if (waitMs !== undefined) pause = { failure, until: now() + Math.min(waitMs, LONGEST_PAUSE_MS) };
  }

  async function search({ text, limit, cursor }: HubQuery): Promise<Result<HubPage>> {
    const query = new URLSearchParams({ search: text, filter: 'gguf', sort: 'downloads', direction: '-1', limit: String(limit) });
    for (const field of FIELDS) query.append('expand', field);
    if (cursor !== undefined) query.set('cursor', cursor);
    const asked = { schema: z.array(z.unknown()), limitBytes: LIST_BYTES, stays: true };
    const inTime = AbortSignal.timeout(LIST_MS);
    const listed = await ask(hub, `${hub.endpoint}/api/models?${query.toString()}`, asked, inTime).catch(tooSlow(inTime));
    if (!listed.ok) {
      if ('waitMs' in listed) pauseFor(listed.failure, listed.waitMs);
      return { ok: false, failure: listed.failure };
    }
    const { value, next } = listed.value;
    const signal = AbortSignal.timeout(TREES_MS);
    const turns = createSemaphore(TREES_AT_ONCE);
    const found = await Promise.all(
      readFound(value, hub.endpoint, limit).map(async (repo): Promise<RepoResult> => {
        if (!(await turns.acquire(signal))) return { ...repo, ...NO_MODELS, problem: TOO_SLOW };
        const models = await list(repo.repo, signal).finally(() => turns.release());
        return { ...repo, ...models };
      }),
    );
    const following = next === undefined ? null : new URL(next).searchParams.get('cursor');
    return ok({ found, next: following !== null && CURSOR.test(following) ? following : undefined });
  }

  async function list(repo: string, signal: AbortSignal): Promise<RepoModels & Pick<RepoResult, 'problem'>> {
    if (pause !== undefined && now() < pause.until) return { ...NO_MODELS, problem: pause.failure.message };
    const asked = { repo, schema: Tree, limitBytes: TREE_BYTES, stays: true };
    const listed = await ask(hub, `${hub.endpoint}/api/models/${repo}/tree/main?recursive=true`, asked, signal).catch(tooSlow(signal));
    if (!listed.ok) {
      if ('waitMs' in listed) pauseFor(listed.failure, listed.waitMs);
      return { ...NO_MODELS, problem: listed.failure.message };
    }
    const { value, next } = listed.value;
    return { ...readModels(repo, value), problem: next === undefined ? undefined : `Only the first ${value.length} files were read` };
  }

  async function start(key: string, query: HubQuery): Promise<Result<HubPage>> {
    running += 1;
    const result = await search(query).finally(() => (running -= 1));
    const isComplete = result.ok && result.value.found.every(({ problem }) => problem === undefined);
    const kept = answers.get(key);
    if (kept !== undefined) kept.until = now() + (isComplete ? KEPT_MS : KEPT_INCOMPLETE_MS);
    return result;
  }

  return async (query) => {
    const key = JSON.stringify([query.text, query.limit, query.cursor]);
    const kept = answers.get(key);
    if (kept !== undefined && now() < kept.until) return await kept.result;
    if (pause !== undefined && now() < pause.until) return { ok: false, failure: pause.failure };
    if (running >= SEARCHES_AT_ONCE) return fail('retry', 'ModelPullFailed', 'Too many searches are running; try again in a few seconds');
    // Until it has ended, so that the same search waits for it.
    const entry = { result: start(key, query), until: Number.POSITIVE_INFINITY };
    answers.delete(key);
    answers.set(key, entry);
    for (const [oldest] of answers) if (answers.size > KEPT_ANSWERS) answers.delete(oldest);
    entry.result.catch(() => answers.delete(key));
    return await entry.result;
  };
}

const NO_MODELS: RepoModels = { models: [], draft: undefined };
const TOO_SLOW = 'The Hub does not answer in time; try again';

const tooSlow = (signal: AbortSignal) => (error: unknown) => {
  if (!signal.aborted) throw error;
  return fail('retry', 'ModelPullFailed', TOO_SLOW);
};
