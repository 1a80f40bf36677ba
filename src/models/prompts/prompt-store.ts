/**
 * Keeps the prompts that model servers have computed, in `<state>/prompts/<slot>`, beyond their end. The files hold
 * what users wrote, in a form that the server can read. A file is offered once: its name is gone before a server reads
 * it, so that a server that does not survive it starts without it the next time.
 */
import { chmod, lstat, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { formatSize } from '../../schema/words/quantities.ts';
import type { PromptCache, ProbeIo, ProviderRegistry } from '../../providers/provider.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { Log } from '../../platform/log.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { PromptReport, PromptServer, PromptStore } from '../../reconciler/ports.ts';
import { keyOf, nameOf, UNFINISHED } from './decide/prompt-files.ts';
import { createPromptDirectory, whereAbsent } from './prompt-directory.ts';

export interface PromptStoreOptions {
  /** `<state>/prompts`. */
  readonly root: string;
  readonly limitBytes: number;
  readonly providers: ProviderRegistry;
  readonly probeIo: ProbeIo;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Default: the system's. */
  readonly wallNow?: () => number;
}

/** Fewer are computed again in the time that saving takes. */
const LEAST_TOKENS = 256;
/** A server that goes on is asked this many times less often after a failure, which may have written gigabytes. */
const FAILED_PAUSES = 10;
const INTERRUPTED = 'not restored: the service ended while a conversation was being saved or restored, and what was left was deleted';
/** Left free on the disk. */
const RESERVE_BYTES = 2 ** 30;

/** A place of a server, and how long it may take to save it. */
type Place = Readonly<{ cache: PromptCache; key: string; place: number; timeoutMs: number }>;
type Saved = Readonly<{ tokens?: number; problem?: string }>;

export function createPromptStore({ root, limitBytes, providers, probeIo, log, wallNow = Date.now }: PromptStoreOptions): PromptStore {
  /** How often what a place holds was restored, by the slot's name and the place; forgotten with the process. */
  const uses = new Map<string, number>();
  /** The last one of each slot. */
  const saves = new Map<SlotName, { readonly usedAt: number; readonly at: number; readonly failed: boolean }>();
  /** Slots of which a file was found that was not completely saved or restored; until the next restore says so. */
  const interrupted = new Set<SlotName>();
  let kept: ReadonlySet<SlotName> | undefined;
  const directory = createPromptDirectory({ root, log, wallNow });
  const { directoryOf, list } = directory;
  const lock = createKeyedLock();
  const inTurn = async <Value>(work: () => Promise<Value>): Promise<Value> => await lock(root, work);

  /** Only in turn: what is under way has such a file, too. */
  async function sweep(slot: SlotName): Promise<void> {
    if (await directory.sweep(slot)) interrupted.add(slot);
  }

  /** Rejects if the server does not answer, so that a busy one is asked again when it stops. */
  async function identify({ endpoint }: PromptServer, cache: PromptCache, signal: AbortSignal) {
    const about = await cache.identify(endpoint, probeIo, signal);
    if (about !== undefined && 'problem' in about) throw new Error(about.problem);
    return about;
  }

  /** Saves what a place holds, unless that is little. */
  async function saveOne(server: PromptServer, { cache, key, place, timeoutMs }: Place, signal: AbortSignal): Promise<Saved> {
    const file = `${key}-${place}${UNFINISHED}`;
    const path = join(directoryOf(server.slot), file);
    try {
      const answer = await cache.move(server.endpoint, probeIo, { direction: 'save', place, file, timeoutMs }, signal);
      if (!answer.ok) return { problem: `not saved: ${answer.problem}` };
      const facts = await lstat(path).catch(whereAbsent(undefined));
      if (answer.tokens < LEAST_TOKENS || facts === undefined) return {};
      if (!facts.isFile() || facts.nlink !== 1) return { problem: `not saved: "${path}" is not a file of the server` };
      if (facts.size > limitBytes)
        return { problem: `not saved: ${formatSize(facts.size)} of one conversation exceed "SVC_PROMPT_CACHE_LIMIT"` };
      await chmod(path, 0o600);
      const replaced = await directory.findReplaced(server.slot, key, path, answer.tokens);
      const before = Math.max(uses.get(`${server.slot}/${place}`) ?? 0, ...replaced.map((each) => each.uses));
      await rename(path, join(directoryOf(server.slot), nameOf({ key, savedAt: wallNow() + place, tokens: answer.tokens, uses: before })));
      for (const each of replaced) await rm(each.path, { force: true });
      return { tokens: answer.tokens };
    } finally {
      await rm(path, { force: true });
    }
  }

  async function save(server: PromptServer, cache: PromptCache, until: number, signal: AbortSignal): Promise<PromptReport | undefined> {
    const startedAt = performance.now();
    const about = await identify(server, cache, signal);
    if (about === undefined) return undefined;
    const key = keyOf(server, about.build);
    const problems: string[] = [];
    const saved: number[] = [];
    for (let place = 0; place < about.places && problems.length === 0 && !signal.aborted; place += 1) {
      const timeoutMs = Math.floor(until - performance.now());
      const { bavail, bsize } = await statfs(directoryOf(server.slot));
      if (bavail * bsize < RESERVE_BYTES)
        problems.push(`not saved, because ${formatSize(bavail * bsize)} of disk space are left at "${root}"`);
      else if (timeoutMs <= 0) problems.push(`${about.places - place} of ${about.places} places were not saved in time`);
      else {
        const { tokens, problem } = await saveOne(server, { cache, key, place, timeoutMs }, signal);
        if (tokens !== undefined) saved.push(tokens);
        if (problem !== undefined) problems.push(problem);
      }
    }
    await directory.makeRoom(limitBytes);
    return reportOf('save', saved, problems, startedAt);
  }

  async function restore(server: PromptServer, cache: PromptCache, until: number, signal: AbortSignal): Promise<PromptReport | undefined> {
    const startedAt = performance.now();
    const files = await list(server.slot);
    const about = files.length === 0 ? undefined : await identify(server, cache, signal);
    const problems = interrupted.delete(server.slot) ? [INTERRUPTED] : [];
    if (about === undefined) return reportOf('restore', [], problems, startedAt);
    const key = keyOf(server, about.build);
    const restored: number[] = [];
    const newest = files.filter((file) => file.key === key).toSorted((one, other) => other.savedAt - one.savedAt);
    for (const [place, { path, tokens, uses: before }] of newest.slice(0, about.places).entries()) {
      const timeoutMs = Math.floor(until - performance.now());
      if (timeoutMs <= 0 || signal.aborted) break;
      const file = `${key}-${place}${UNFINISHED}`;
      const taken = join(directoryOf(server.slot), file);
      await rename(path, taken);
      try {
        const answer = await cache.move(server.endpoint, probeIo, { direction: 'restore', place, file, timeoutMs }, signal);
        if (answer.ok && answer.tokens === tokens) {
          restored.push(tokens);
          uses.set(`${server.slot}/${place}`, before + 1);
        } else problems.push(`not restored: ${answer.ok ? `the server has read ${answer.tokens} of ${tokens} tokens` : answer.problem}`);
      } finally {
        await rm(taken, { force: true });
      }
    }
    return reportOf('restore', restored, problems, startedAt);
  }

  type Work = (cache: PromptCache, until: number) => Promise<PromptReport | undefined>;

  /** One after the other for each store: they share its disk space. */
  async function run(direction: PromptReport['direction'], { variable }: PromptServer, budgetMs: number, work: Work) {
    const cache = Object.values(providers).find(({ promptCache }) => promptCache?.variable === variable)?.promptCache;
    if (cache === undefined) return undefined;
    const until = performance.now() + budgetMs;
    return await inTurn(async () => await work(cache, until)).catch((error: unknown): PromptReport => ({
      direction,
      tokens: 0,
      conversations: 0,
      tookMs: 0,
      problems: [`not ${direction}d: ${messageOf(error)}`],
    }));
  }

  return {
    root,
    async prepare(slot) {
      // Another server has other prompts.
      saves.delete(slot);
      try {
        await inTurn(async () => {
          await directory.make(slot);
          await sweep(slot);
        });
        return undefined;
      } catch (error) {
        log.warn({ slot }, `Prompts are not kept: ${messageOf(error)}`);
        return messageOf(error);
      }
    },
    save: async (server, { budgetMs, usedAt, pauseMs = 0 }, signal) =>
      await run('save', server, budgetMs, async (cache, until) => {
        const last = saves.get(server.slot);
        if (last !== undefined && (last.usedAt === usedAt || performance.now() - last.at < pauseMs * (last.failed ? FAILED_PAUSES : 1)))
          return undefined;
        const report = await save(server, cache, until, signal);
        // One that was interrupted is made up for.
        if (!signal.aborted) saves.set(server.slot, { usedAt, at: performance.now(), failed: (report?.problems.length ?? 0) > 0 });
        return report;
      }),
    restore: async (server, budgetMs, signal) =>
      await run('restore', server, budgetMs, async (cache, until) => {
        const report = await restore(server, cache, until, signal);
        if (report !== undefined) log.info({ slot: server.slot, ...report }, 'Prompts restored');
        return report;
      }),
    keepOnly(slots) {
      if (kept !== undefined && kept.size === slots.size && [...slots].every((slot) => kept?.has(slot))) return;
      const isFirst = kept === undefined;
      kept = slots;
      void inTurn(async () => {
        await directory.keepOnly(slots);
        if (isFirst) for (const slot of slots) await sweep(slot);
      }).catch((error: unknown) => log.warn({}, `Kept prompts that nobody needs cannot be deleted: ${messageOf(error)}`));
    },
  };
}

function reportOf(
  direction: PromptReport['direction'],
  tokens: readonly number[],
  problems: readonly string[],
  startedAt: number,
): PromptReport | undefined {
  if (tokens.length === 0 && problems.length === 0) return undefined;
  const sum = tokens.reduce((total, each) => total + each, 0);
  return { direction, tokens: sum, conversations: tokens.length, tookMs: Math.round(performance.now() - startedAt), problems };
}
