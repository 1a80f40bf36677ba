/**
 * Keeps the configuration of this host as the newest commit of a repository declares it: fetch → verify → judge the
 * whole tree → plan → apply as one change. A commit with a mistake changes nothing, and what was applied last serves.
 */
import { messageOf } from '../../platform/error-text.ts';
import { pause } from '../../platform/clock.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import type { ConfigSource } from '../../schema/status/config-source.ts';
import { createSourceSteps, type GitSourceOptions } from './source-steps.ts';

interface Look {
  readonly fetches: boolean;
  /** Local edits are put back. */
  readonly heals: boolean;
  /** A commit is applied outside of its window. */
  readonly force: boolean;
}

/** Longest time between attempts while the repository cannot be fetched, unless the interval is longer. */
const LONGEST_BACKOFF_MS = 15 * 60_000;
const JITTER = 0.1;
/** Webhooks of several pushes lead to one fetch. */
const BETWEEN_FETCHES_MS = 1000;

export function createGitSource(options: GitSourceOptions) {
  const { settings, files, clock, log, random = Math.random } = options;
  const heals = settings.SVC_GIT_SELF_HEAL === 'on';
  const lock = createKeyedLock();
  const stopping = new AbortController();
  const { signal } = stopping;
  const steps = createSourceSteps(options, signal);
  const { state } = steps;
  let synced: boolean | undefined;
  let woken = new AbortController();

  const look = async (wanted: Look): Promise<void> =>
    await lock('look', async () => {
      if (signal.aborted) return;
      if (!state.applied.suspended) {
        if (wanted.fetches) await steps.fetchHead();
        if (!signal.aborted) await steps.apply(wanted.heals, wanted.force);
      }
      synced = (await steps.describe()).state === 'Synced';
    });

  const source: ConfigSource = {
    status: steps.describe,
    diff: steps.diff,
    async sync({ force }) {
      await look({ fetches: true, heals: true, force });
      return await steps.describe();
    },
    notify: () => woken.abort(),
    async setSuspended(suspended) {
      await lock('look', async () => {
        await steps.recall();
        const applied = { ...state.applied, suspended };
        await files.save(applied);
        state.applied = applied;
      });
      if (!suspended) woken.abort();
      return await steps.describe();
    },
    commitOf: (slot) => (state.applied.suspended ? undefined : state.applied.files.get(`slots/${slot}.toml`)?.commit),
    isSigned: options.isSigned,
    isSynced: () => synced,
  };

  const failed = (error: unknown): void => log.warn({}, `The repository cannot be applied: ${messageOf(error)}`);
  const restMs = (): number => {
    const windowMs = state.heldUntil === undefined ? Number.POSITIVE_INFINITY : Math.max(0, state.heldUntil - clock.wallNow());
    return Math.min(delayMs(settings.SVC_GIT_INTERVAL, state.failures, random()), windowMs);
  };

  return {
    source,
    /** To be called before the first pass, which must not see half of a change. */
    open: steps.open,
    /** Looks for local edits only. */
    check: async (): Promise<void> => await look({ fetches: false, heals, force: false }).catch(failed),
    /** Resolves after `stop`. */
    async run(): Promise<void> {
      while (!signal.aborted) {
        // A push during the fetch leads to another one.
        woken = new AbortController();
        await look({ fetches: true, heals, force: false }).catch(failed);
        await pause(clock, BETWEEN_FETCHES_MS, signal);
        await pause(clock, restMs(), AbortSignal.any([signal, woken.signal]));
      }
    },
    async stop(): Promise<void> {
      stopping.abort();
      await lock('look', async () => undefined);
    },
  };
}

/** Doubles with each failure. */
function delayMs(intervalMs: number, failures: number, random: number): number {
  const longest = Math.max(intervalMs, LONGEST_BACKOFF_MS);
  const base = Math.min(intervalMs * 2 ** Math.max(0, failures - 1), longest);
  return base * (1 + JITTER * (2 * random - 1));
}
