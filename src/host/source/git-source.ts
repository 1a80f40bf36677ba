/**
 * Keeps the configuration of this host as the newest commit of a repository declares it: fetch → verify → judge the
 * whole tree → plan → apply as one change. A commit with a mistake changes nothing, and what was applied last serves.
 */
import { foreignEncoding, TEXT_BYTES } from '../../files/regular-file.ts';
import { createBreather } from '../../platform/slices.ts';
import { messageOf } from '../../platform/error-text.ts';
import { pause } from '../../platform/clock.ts';
import type { SourceLog } from '../../platform/log.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import type { Clock } from '../../reconciler/ports.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { ConfigSource, SourceStatus, SyncOptions } from '../../schema/status/config-source.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { judgeEntries, judgeFile, judgeTogether, listProblems, LOOKED_FOR, slotOf, type JudgedFile } from './decide/judge-tree.ts';
import { describeFiles, ownedAfter, planSource, type FileEdit } from './decide/plan-source.ts';
import type { Commit, Sourced, SourceProblem, TreeSource } from './ports.ts';
import { NOTHING, writeProblem, type Applied, type SourceFiles } from './source-files.ts';

export interface GitSourceOptions {
  readonly settings: Pick<Settings, 'SVC_GIT_REF' | 'SVC_GIT_PATH' | 'SVC_GIT_INTERVAL' | 'SVC_GIT_SELF_HEAL'> & {
    readonly SVC_GIT_URL: string;
  };
  readonly tree: TreeSource;
  readonly files: SourceFiles;
  readonly clock: Clock;
  readonly log: SourceLog;
  /** Whether a commit may be applied now, and until when that holds (Unix milliseconds). Default: always. */
  readonly window?: (wallNow: number) => { readonly isOpen: boolean; readonly until: number };
  /** 0 to 1, so that many hosts do not ask at once. */
  readonly random?: () => number;
  /** Notes who wrote the text of a slot. */
  readonly attribute?: (slot: SlotName, text: string, who: string) => void;
  readonly isSigned: ConfigSource['isSigned'];
}

interface Head extends Commit {
  /** What it declares, if it may be applied. */
  readonly declared: ReadonlyMap<string, string> | undefined;
}

interface FoundProblem extends SourceProblem {
  /** Null if it is not one of a commit. */
  readonly commit: string | null;
  readonly since: number;
}

/** Longest time between attempts while the repository cannot be fetched, unless the interval is longer. */
const LONGEST_BACKOFF_MS = 15 * 60_000;
const JITTER = 0.1;
/** Webhooks of several pushes lead to one fetch. */
const BETWEEN_FETCHES_MS = 1000;

export function createGitSource(options: GitSourceOptions) {
  const {
    settings,
    tree,
    files,
    clock,
    log,
    window = () => ({ isOpen: true, until: Number.POSITIVE_INFINITY }),
    random = Math.random,
    attribute,
    isSigned,
  } = options;
  const lock = createKeyedLock();
  const stopping = new AbortController();
  const judge = createJudge(tree, files);
  let applied: Applied = NOTHING;
  let head: Head | undefined;
  let problem: FoundProblem | undefined;
  let fetchedAt: number | undefined;
  let heldUntil: number | undefined;
  let failures = 0;
  let synced: boolean | undefined;
  let wake: (() => void) | undefined;

  function setProblem(found: SourceProblem | undefined, commit: string | null = null): void {
    if (found?.message === problem?.message) return;
    if (found === undefined) log.info({ commit: applied.commit }, `The repository "${settings.SVC_GIT_URL}" is in force again`);
    else log.warn({ commit, reason: found.reason }, `${commit === null ? '' : `Commit ${commit.slice(0, 12)}: `}${found.message}`);
    problem = found && { ...found, commit, since: clock.wallNow() };
  }

  async function fetchHead(): Promise<void> {
    const fetched = await tree.fetch(stopping.signal);
    if (stopping.signal.aborted) return;
    failures = fetched.ok ? 0 : failures + 1;
    if (!fetched.ok) return setProblem(fetched.problem);
    fetchedAt = clock.wallNow();
    const { value: commit } = fetched;
    if (head?.commit === commit.commit && head.declared !== undefined) return problem?.commit === null ? setProblem(undefined) : undefined;
    const judged = await judge(commit.commit, applied, stopping.signal);
    if (stopping.signal.aborted) return;
    head = { ...commit, declared: judged.ok ? judged.value : undefined };
    setProblem(judged.ok ? undefined : judged.problem, judged.ok ? null : commit.commit);
  }

  /** What the newest commit declares, if it may be applied and is not. */
  function newDeclared(): Head['declared'] {
    if (head?.declared === undefined) return undefined;
    const { declared } = head;
    const isSame = declared.size === applied.files.size && [...declared].every(([path, text]) => applied.files.get(path)?.text === text);
    return isSame && head.commit === applied.commit ? undefined : declared;
  }

  /** Undefined: what was applied stays. */
  function nextOf(force: boolean): Head | undefined {
    heldUntil = undefined;
    if (newDeclared() === undefined) return undefined;
    const { isOpen, until } = window(clock.wallNow());
    if (!isOpen && !force) heldUntil = until;
    return isOpen || force ? head : undefined;
  }

  async function planFor(declared: Head['declared'], heals: boolean) {
    const wanted = declared ?? new Map([...applied.files].map(([path, { text }]) => [path, text]));
    const local = await files.readLocal(new Set([...wanted.keys(), ...applied.files.keys()]));
    return { wanted, ...planSource({ declared: wanted, owned: applied.files, local, heals }) };
  }

  async function applyNext(heals: boolean, force: boolean): Promise<void> {
    try {
      applied = (await files.finish()) ?? applied;
      const next = nextOf(force);
      const { wanted, edits, blocked } = await planFor(next?.declared, heals);
      if (blocked.length > 0) throw new Error(`"${blocked.join('", "')}" cannot be read as a text; move it elsewhere`);
      if (next === undefined && edits.length === 0) return problem?.reason === 'WriteFailed' ? setProblem(undefined) : undefined;
      const after =
        next === undefined
          ? applied
          : { ...applied, commit: next.commit, at: clock.wallNow(), files: ownedAfter(wanted, applied.files, next.commit) };
      await files.apply(edits, after, applied.files);
      applied = after;
      noteAuthors(edits, next);
      const changed = edits.map(({ path }) => `"${path}"`).join(', ');
      log.info(
        { commit: after.commit, files: edits.length },
        next === undefined
          ? `Put back local edits of ${changed}`
          : `Applied commit ${next.commit.slice(0, 12)}: ${changed || 'no file has changed'}`,
      );
      if (problem?.reason === 'WriteFailed') setProblem(undefined);
    } catch (error) {
      setProblem({ reason: 'WriteFailed', message: writeProblem(error) }, head?.commit ?? null);
    }
  }

  function noteAuthors(edits: readonly FileEdit[], next: Head | undefined): void {
    const who = next === undefined ? 'git' : `git ${next.commit.slice(0, 12)}, ${next.author}`;
    for (const { path, after } of edits) {
      const slot = slotOf(path);
      if (slot !== undefined && after !== undefined) attribute?.(slot, after, who);
    }
  }

  const look = async ({
    fetches,
    heals,
    force,
  }: {
    readonly fetches: boolean;
    readonly heals: boolean;
    readonly force: boolean;
  }): Promise<void> =>
    await lock('look', async () => {
      if (stopping.signal.aborted) return;
      if (!applied.suspended) {
        if (fetches) await fetchHead();
        if (!stopping.signal.aborted) await applyNext(heals, force);
      }
      synced = (await describe()).state === 'Synced';
    });

  async function describe(): Promise<SourceStatus> {
    const next = newDeclared();
    const described = describeFiles(applied.files, await files.readLocal(applied.files.keys()), next);
    return statusOf({ settings, applied, head, next, problem, fetchedAt, heldUntil, described });
  }

  const heals = settings.SVC_GIT_SELF_HEAL === 'on';
  const source: ConfigSource = {
    status: describe,
    async diff() {
      const { edits } = await planFor(newDeclared(), true);
      const changes = edits.map(({ path, before = null, after = null }) => ({ path, before, after }));
      return { commit: newDeclared() === undefined ? applied.commit : (head?.commit ?? null), files: changes };
    },
    async sync({ force }: SyncOptions) {
      await look({ fetches: true, heals: true, force });
      return await describe();
    },
    notify: () => wake?.(),
    async setSuspended(suspended) {
      await lock('look', async () => {
        await files.save({ ...applied, suspended });
        applied = { ...applied, suspended };
      });
      if (!suspended) wake?.();
      return await describe();
    },
    commitOf: (slot: SlotName) => (applied.suspended ? undefined : applied.files.get(`slots/${slot}.toml`)?.commit),
    isSigned,
    isSynced: () => synced,
  };

  return {
    source,
    /** Before the first pass, which must not see half of a change. */
    async open(): Promise<void> {
      applied = await files.read();
      try {
        applied = (await files.finish()) ?? applied;
      } catch (error) {
        setProblem({ reason: 'WriteFailed', message: writeProblem(error) }, applied.commit);
      }
    },
    /** Looks for local edits only. */
    check: async (): Promise<void> => await look({ fetches: false, heals, force: false }),
    /** Until `stop`. */
    async run(): Promise<void> {
      const { signal } = stopping;
      while (!signal.aborted) {
        await look({ fetches: true, heals, force: false }).catch((error: unknown) =>
          log.warn({}, `The source cannot be read: ${messageOf(error)}`),
        );
        await pause(clock, BETWEEN_FETCHES_MS, signal);
        const woken = new AbortController();
        wake = () => woken.abort();
        const windowMs = heldUntil === undefined ? Number.POSITIVE_INFINITY : Math.max(0, heldUntil - clock.wallNow());
        await pause(
          clock,
          Math.min(delayMs(settings.SVC_GIT_INTERVAL, failures, random()), windowMs),
          AbortSignal.any([signal, woken.signal]),
        );
      }
    },
    async stop(): Promise<void> {
      stopping.abort();
      await lock('look', async () => undefined);
    },
  };
}

interface StatusFacts extends Pick<GitSourceOptions, 'settings'> {
  readonly applied: Applied;
  readonly head: Head | undefined;
  readonly next: Head['declared'];
  readonly problem: FoundProblem | undefined;
  readonly fetchedAt: number | undefined;
  readonly heldUntil: number | undefined;
  readonly described: readonly SourceStatus['files'][number][];
}

/** A repository that does not answer makes nothing differ, but what is newest is not known then. */
function statusOf({ settings, applied, head, next, problem, fetchedAt, heldUntil, described }: StatusFacts): SourceStatus {
  const isBehind = (problem?.commit ?? null) !== null || next !== undefined || described.some(({ state }) => state === 'OutOfSync');
  const isUnknown = applied.commit === null || problem !== undefined || fetchedAt === undefined;
  return {
    url: settings.SVC_GIT_URL,
    ref: settings.SVC_GIT_REF,
    path: settings.SVC_GIT_PATH,
    state: isBehind ? 'OutOfSync' : isUnknown ? 'Unknown' : 'Synced',
    self_heal: settings.SVC_GIT_SELF_HEAL === 'on',
    suspended: applied.suspended,
    revision: applied.commit,
    applied_at: applied.commit === null ? null : isoOf(applied.at),
    head: head === undefined ? null : { commit: head.commit, subject: head.subject, author: head.author, at: isoOf(head.at) },
    fetched_at: isoOf(fetchedAt),
    held_until: isoOf(heldUntil),
    problem: problem === undefined ? null : { ...problem, since: new Date(problem.since).toISOString() },
    files: [...described],
  };
}

/** Doubles with each failure. */
function delayMs(intervalMs: number, failures: number, random: number): number {
  const longest = Math.max(intervalMs, LONGEST_BACKOFF_MS);
  const base = Math.min(intervalMs * 2 ** Math.max(0, failures - 1), longest);
  return base * (1 + JITTER * (2 * random - 1));
}

const isoOf = (at: number | undefined): string | null =>
  at === undefined || !Number.isFinite(at) || at <= 0 ? null : new Date(at).toISOString();

/** Returns what a commit declares. A text that was parsed before is not parsed again. */
function createJudge(tree: TreeSource, files: Pick<SourceFiles, 'localEngines'>) {
  let known = new Map<string, JudgedFile>();
  return async (commit: string, applied: Applied, signal: AbortSignal): Promise<Sourced<ReadonlyMap<string, string>>> => {
    const verified = await tree.verify(commit, signal);
    if (!verified.ok) return verified;
    const listed = await tree.list(commit, LOOKED_FOR, signal);
    if (!listed.ok) return listed;
    const { files: entries, problems } = judgeEntries(listed.value, TEXT_BYTES);
    if (problems.length > 0) return invalid(problems);
    const keyOf = ({ path, id }: { readonly path: string; readonly id: string }): string => `${id} ${path}`;
    const unread = entries.filter((entry) => !known.has(keyOf(entry)));
    const contents = await tree.read(
      unread.map(({ id }) => id),
      signal,
    );
    if (!contents.ok) return contents;
    const breathe = createBreather();
    const judged = new Map<string, JudgedFile>();
    for (const [index, entry] of unread.entries()) {
      const bytes = contents.value[index] ?? Buffer.alloc(0);
      judged.set(keyOf(entry), judgeFile(entry.path, bytes.toString('utf8'), foreignEncoding(bytes)));
      await breathe();
    }
    known = new Map(
      entries.flatMap((entry) => {
        const found = judged.get(keyOf(entry)) ?? known.get(keyOf(entry));
        return found === undefined ? [] : [[keyOf(entry), found] as const];
      }),
    );
    const byPath = new Map(
      entries.flatMap((entry) => {
        const found = known.get(keyOf(entry));
        return found === undefined ? [] : [[entry.path, found] as const];
      }),
    );
    const slots = [...applied.files.keys()].filter((path) => slotOf(path) !== undefined).length;
    const own = [...byPath.values()].flatMap((file) => file.problems);
    const all = own.length > 0 ? own : judgeTogether(byPath, await files.localEngines(applied.files), slots);
    return all.length > 0 ? invalid(all) : { ok: true, value: new Map([...byPath].map(([path, { text }]) => [path, text])) };
  };
}

const invalid = (problems: readonly string[]): Sourced<never> => ({
  ok: false,
  problem: {
    reason: 'CommitInvalid',
    message: `${listProblems(problems).join('; ')}. Nothing of the commit was applied: correct it with another commit`,
  },
});
