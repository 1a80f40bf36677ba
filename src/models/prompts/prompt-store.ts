/**
 * Keeps the prompts that model servers have computed, in `<state>/prompts/<slot>`, beyond their end. The files hold
 * what users wrote, in a form that the server can read. A file is offered once: its name is gone before a server reads
 * it, so that a server that does not survive it starts without it the next time.
 */
import { chmod, lstat, mkdir, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { formatSize } from '../../schema/words/quantities.ts';
import type { PromptCache, ProbeIo, ProviderRegistry } from '../../providers/provider.ts';
import { codeOf, isAbsent, messageOf } from '../../platform/error-text.ts';
import type { Log } from '../../platform/log.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { PromptReport, PromptServer, PromptStore } from '../../reconciler/ports.ts';
import { chooseSuperfluous, keyOf, nameOf, parseName, UNFINISHED, type StoredFile } from './decide/prompt-files.ts';

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
/** Left free on the disk. */
const RESERVE_BYTES = 2 ** 30;

interface Located extends StoredFile {
  readonly path: string;
}

export function createPromptStore({ root, limitBytes, providers, probeIo, log, wallNow = Date.now }: PromptStoreOptions): PromptStore {
  /** How often what a place holds was restored, by the slot's name and the place; forgotten with the process. */
  const uses = new Map<string, number>();
  let kept: ReadonlySet<SlotName> | undefined;
  const lock = createKeyedLock();
  const inTurn = async <Value>(work: () => Promise<Value>): Promise<Value> => await lock(root, work);

  const directoryOf = (slot: string): string => join(root, slot);

  async function list(slot: string): Promise<readonly Located[]> {
    const directory = directoryOf(slot);
    const names = await readdir(directory).catch(whereAbsent([]));
    const files = await Promise.all(names.map(async (name) => await look(directory, name)));
    return files.flatMap((file) => file ?? []);
  }

  /** Deletes what is not a file of ours: only this program and its servers write here. */
  async function look(directory: string, name: string): Promise<Located | undefined> {
    const path = join(directory, name);
    const file = parseName(name);
    const facts = await lstat(path).catch(whereAbsent(undefined));
    if (facts === undefined || name.endsWith(UNFINISHED)) return undefined;
    if (file !== undefined && facts.isFile() && facts.nlink === 1)
      return { ...file, path, bytes: facts.size, ageMs: wallNow() - facts.mtimeMs };
    await rm(path, { recursive: true, force: true });
    log.warn({ path }, 'A foreign entry among kept prompts was deleted');
    return undefined;
  }

  async function makeRoom(limit: number): Promise<void> {
    const slots = await readdir(root).catch(whereAbsent([]));
    const files = (await Promise.all(slots.map(async (slot) => await list(slot)))).flat();
    for (const { path } of chooseSuperfluous(files, limit)) await rm(path, { force: true });
  }

  async function save(server: PromptServer, cache: PromptCache, until: number, signal: AbortSignal): Promise<PromptReport | undefined> {
    const startedAt = performance.now();
    const about = await cache.identify(server.endpoint, probeIo, signal);
    if (about === undefined) return undefined;
    const directory = directoryOf(server.slot);
    const key = keyOf(server, about.build);
    const problems: string[] = [];
    const saved: number[] = [];
    for (let place = 0; place < about.places; place += 1) {
      const timeoutMs = Math.floor(until - performance.now());
      const { bavail, bsize } = await statfs(directory);
      if (bavail * bsize < RESERVE_BYTES)
        problems.push(`not saved, because ${formatSize(bavail * bsize)} of disk space are left at "${root}"`);
      else if (timeoutMs <= 0) problems.push(`${about.places - place} of ${about.places} places were not saved in time`);
      if (problems.length > 0 || signal.aborted) break;
      const file = `${key}-${place}${UNFINISHED}`;
      const path = join(directory, file);
      try {
        const answer = await cache.move(server.endpoint, probeIo, { direction: 'save', place, file, timeoutMs }, signal);
        if (!answer.ok) {
          problems.push(`not saved: ${answer.problem}`);
          break;
        }
        const facts = await lstat(path).catch(whereAbsent(undefined));
        if (answer.tokens < LEAST_TOKENS || facts === undefined) continue;
        if (!facts.isFile() || facts.nlink !== 1) problems.push(`not saved: "${path}" is not a file of the server`);
        if (problems.length > 0) break;
        await chmod(path, 0o600);
        const name = nameOf({ key, place, tokens: answer.tokens, uses: uses.get(`${server.slot}/${place}`) ?? 0 });
        await rename(path, join(directory, name));
        saved.push(answer.tokens);
      } finally {
        await rm(path, { force: true });
      }
    }
    await makeRoom(limitBytes);
    return reportOf('save', saved, problems, startedAt);
  }

  async function restore(server: PromptServer, cache: PromptCache, until: number, signal: AbortSignal): Promise<PromptReport | undefined> {
    const startedAt = performance.now();
    const files = await list(server.slot);
    if (files.length === 0) return undefined;
    const about = await cache.identify(server.endpoint, probeIo, signal);
    if (about === undefined) return undefined;
    const key = keyOf(server, about.build);
    const problems: string[] = [];
    const restored: number[] = [];
    const fitting = files
      .filter((file) => file.key === key && file.place < about.places)
      .toSorted((one, other) => other.tokens - one.tokens);
    for (const { path, place, tokens, uses: before } of fitting) {
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

  /** One after the other for each store: they share its disk space. */
  const move = async (direction: 'save' | 'restore', server: PromptServer, budgetMs: number, signal: AbortSignal) => {
    const cache = Object.values(providers).find(({ promptCache }) => promptCache?.variable === server.variable)?.promptCache;
    if (cache === undefined) return undefined;
    const until = performance.now() + budgetMs;
    const report = await inTurn(async () => await (direction === 'save' ? save : restore)(server, cache, until, signal)).catch(
      (error: unknown): PromptReport => ({
        direction,
        tokens: 0,
        conversations: 0,
        tookMs: 0,
        problems: [`not ${direction}d: ${messageOf(error)}`],
      }),
    );
    if (report !== undefined) log.info({ slot: server.slot, ...report }, `Prompts ${direction}d`);
    return report;
  };

  return {
    root,
    async prepare(slot) {
      try {
        await mkdir(root, { recursive: true, mode: 0o700 });
        const directory = directoryOf(slot);
        await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
          if (codeOf(error) !== 'EEXIST') throw error;
        });
        if (!(await lstat(directory)).isDirectory()) throw new Error(`"${directory}" is not a directory: remove it`);
        // What a service that was killed has left.
        await inTurn(async () => {
          for (const name of await readdir(directory)) if (name.endsWith(UNFINISHED)) await rm(join(directory, name), { force: true });
        });
        return undefined;
      } catch (error) {
        log.warn({ slot }, `Prompts are not kept: ${messageOf(error)}`);
        return messageOf(error);
      }
    },
    save: async (server, budgetMs, signal) => await move('save', server, budgetMs, signal),
    restore: async (server, budgetMs, signal) => await move('restore', server, budgetMs, signal),
    keepOnly(slots) {
      if (kept !== undefined && kept.size === slots.size && [...slots].every((slot) => kept?.has(slot))) return;
      kept = slots;
      void inTurn(async () => {
        for (const name of await readdir(root).catch(whereAbsent([])))
          if (![...slots].some((slot) => slot === name)) await rm(join(root, name), { recursive: true, force: true });
      }).catch((error: unknown) => log.warn({}, `Kept prompts of removed slots cannot be deleted: ${messageOf(error)}`));
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

const whereAbsent =
  <Value>(value: Value) =>
  (error: unknown): Value => {
    if (isAbsent(error)) return value;
    throw error;
  };
