/** The steps of a look at the repository, which share a state: fetch and judge the newest commit, plan, apply. */
import { messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { Clock } from '../../reconciler/ports.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { ConfigSource, SourceDiff, SourceStatus } from '../../schema/status/config-source.ts';
import { HIDDEN } from '../../schema/words/failure.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { isSecret, slotOf } from './decide/judge-tree.ts';
import { describeFiles, ownedAfter, planSource, type FileEdit } from './decide/plan-source.ts';
import { createJudge, type JudgeOptions } from './judge-commit.ts';
import type { Commit, SourceProblem, TreeSource } from './ports.ts';
import { NOTHING, type Applied, type SourceFiles } from './source-files.ts';

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
  /** Notes who wrote the text of a slot. */
  readonly attribute?: (slot: SlotName, text: string, who: string) => void;
  readonly isSigned: ConfigSource['isSigned'];
  readonly decrypt?: JudgeOptions['decrypt'];
  /** 0 to 1, so that many hosts do not ask at once. */
  readonly random?: () => number;
}

interface Head extends Commit {
  /** What it declares, if it may be applied. */
  readonly declared: ReadonlyMap<string, string> | undefined;
}

interface SourceState {
  applied: Applied;
  /** The newest commit that was fetched. */
  head: Head | undefined;
  /** `commit` is null if it is not one of a commit. Times are Unix milliseconds. */
  problem: (SourceProblem & { readonly commit: string | null; readonly since: number }) | undefined;
  fetchedAt: number | undefined;
  heldUntil: number | undefined;
  /** Fetches that have failed since the last one that did not. */
  failures: number;
}

const ALWAYS = () => ({ isOpen: true, until: Number.POSITIVE_INFINITY });

export function createSourceSteps(options: GitSourceOptions, signal: AbortSignal) {
  const { settings, tree, files, clock, log, window = ALWAYS } = options;
  const judge = createJudge(options);
  const state: SourceState = {
    applied: NOTHING,
    head: undefined,
    problem: undefined,
    fetchedAt: undefined,
    heldUntil: undefined,
    failures: 0,
  };

  function setProblem(found: SourceProblem | undefined, commit: string | null = null): void {
    if (found?.message === state.problem?.message) return;
    if (found === undefined) log.info({}, `The repository "${settings.SVC_GIT_URL}" can be applied again`);
    else log.warn({ commit, reason: found.reason }, `${commit === null ? '' : `Commit ${commit.slice(0, 12)}: `}${found.message}`);
    state.problem = found && { ...found, commit, since: clock.wallNow() };
  }
  const writeFailed = (error: unknown): void =>
    setProblem({ reason: 'WriteFailed', message: `The files of the commit cannot be written: ${messageOf(error)}` }, state.head?.commit);
  const writeSucceeded = (): void => (state.problem?.reason === 'WriteFailed' ? setProblem(undefined) : undefined);

  let isKnown = false;
  /** Throws if it is not known what was applied: then nothing is. */
  async function recall(): Promise<void> {
    if (!isKnown) state.applied = await files.read();
    isKnown = true;
  }

  async function fetchHead(): Promise<void> {
    const fetched = await tree.fetch(signal);
    if (signal.aborted) return;
    state.failures = fetched.ok ? 0 : state.failures + 1;
    if (!fetched.ok) return setProblem(fetched.problem);
    state.fetchedAt = clock.wallNow();
    const { value: commit } = fetched;
    if (state.head?.commit === commit.commit && state.head.declared !== undefined)
      return state.problem?.commit === null ? setProblem(undefined) : undefined;
    const judged = await judge(commit.commit, state.applied, signal);
    if (signal.aborted) return;
    state.head = { ...commit, declared: judged.ok ? judged.value : undefined };
    setProblem(judged.ok ? undefined : judged.problem, judged.ok ? null : commit.commit);
  }

  async function planFor(declared: Head['declared'], heals: boolean) {
    const { files: owned } = state.applied;
    const wanted = declared ?? new Map([...owned].map(([path, { text }]) => [path, text]));
    const local = await files.readLocal(new Set([...wanted.keys(), ...owned.keys()]));
    return { wanted, ...planSource({ declared: wanted, owned, local, heals }) };
  }

  /** Undefined: what was applied stays. */
  function nextOf(force: boolean): Head | undefined {
    state.heldUntil = undefined;
    if (newDeclared(state) === undefined) return undefined;
    const { isOpen, until } = window(clock.wallNow());
    if (!isOpen && !force) state.heldUntil = until;
    return isOpen || force ? state.head : undefined;
  }

  async function applyNext(heals: boolean, force: boolean): Promise<void> {
    await recall();
    state.applied = (await files.finish()) ?? state.applied;
    const { applied } = state;
    const next = nextOf(force);
    const { wanted, edits, blocked } = await planFor(next?.declared, heals);
    if (blocked.length > 0) throw new Error(`"${blocked.join('", "')}" cannot be read as a text; move it elsewhere`);
    if (next === undefined && edits.length === 0) return;
    const owned = next === undefined ? applied.files : ownedAfter(wanted, applied.files, next.commit);
    const after = next === undefined ? applied : { ...applied, commit: next.commit, at: clock.wallNow(), files: owned };
    await files.apply(edits, after, applied.files);
    state.applied = after;
    noteAuthors(edits, next, options.attribute);
    const changed = edits.length === 0 ? 'no file has changed' : edits.map(({ path }) => `"${path}"`).join(', ');
    log.info(
      { commit: after.commit },
      next === undefined ? `Put back local edits of ${changed}` : `Applied commit ${next.commit.slice(0, 12)}: ${changed}`,
    );
  }

  return {
    state,
    fetchHead,
    apply: async (heals: boolean, force: boolean): Promise<void> => await applyNext(heals, force).then(writeSucceeded, writeFailed),
    recall,
    /** Finishes what a killed service has begun. */
    async open(): Promise<void> {
      try {
        await recall();
        state.applied = (await files.finish()) ?? state.applied;
      } catch (error) {
        writeFailed(error);
      }
    },
    async describe(): Promise<SourceStatus> {
      const described = describeFiles(state.applied.files, await files.readLocal(state.applied.files.keys()), newDeclared(state));
      return statusOf(settings, state, described);
    },
    async diff(): Promise<SourceDiff> {
      const next = newDeclared(state);
      const { edits } = await planFor(next, true);
      const changes = edits.map(({ path, before, after }) => ({ path, before: shownText(path, before), after: shownText(path, after) }));
      return { commit: next === undefined ? state.applied.commit : (state.head?.commit ?? null), files: changes };
    },
  };
}

/** What the newest commit declares, if it may be applied and is not. */
function newDeclared({ head, applied }: SourceState): Head['declared'] {
  if (head?.declared === undefined) return undefined;
  const { declared } = head;
  const isSame = declared.size === applied.files.size && [...declared].every(([path, text]) => applied.files.get(path)?.text === text);
  return isSame && head.commit === applied.commit ? undefined : declared;
}

const shownText = (path: string, text: string | undefined): string | null => (text === undefined ? null : isSecret(path) ? HIDDEN : text);

function noteAuthors(edits: readonly FileEdit[], next: Commit | undefined, attribute: GitSourceOptions['attribute']): void {
  const who = next === undefined ? 'git' : `git ${next.commit.slice(0, 12)}, ${next.author}`;
  for (const { path, after } of edits) {
    const slot = slotOf(path);
    if (slot !== undefined && after !== undefined) attribute?.(slot, after, who);
  }
}

/** A repository that does not answer makes nothing differ, but what is newest is not known then. */
function statusOf(
  settings: GitSourceOptions['settings'],
  found: SourceState,
  files: readonly SourceStatus['files'][number][],
): SourceStatus {
  const { applied, head, problem, fetchedAt, heldUntil } = found;
  const isBehind =
    (problem?.commit ?? null) !== null || newDeclared(found) !== undefined || files.some(({ state }) => state === 'OutOfSync');
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
    files: [...files],
  };
}

const isoOf = (at: number | undefined): string | null =>
  at === undefined || !Number.isFinite(at) || at <= 0 ? null : new Date(at).toISOString();
