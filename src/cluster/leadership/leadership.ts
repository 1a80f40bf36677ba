/**
 * Leader election on a Lease. `start` runs a loop until its signal aborts, then ends the term and releases the Lease.
 * The phases of a replica:
 *
 *      standby ── lease expired or released: acquire ──▶ leader ── renew, renew, … ──▶ leader
 *       ▲   └── no Lease: create it ──▶ holder, ── delay ──▶ ▲                           │
 *       │                               not leader yet                                  │
 *       └────── renewal deadline exceeded, or another replica wrote the Lease ──────────┘
 *
 * A term, in time since the leader sent its last renewal:
 *
 *      0 ────── renewMs: sends the next renewal ────── renewDeadlineMs: term ends ────── durationMs: others may acquire
 */
import type { Failure } from '../../schema/words/failure.ts';
import * as election from './decide/lease-decision.ts';
import { parseLease, SHORTEST_LEASE_MS } from './decide/lease-record.ts';
import { createLeaseRequests, createLeaseWatch } from './lease-watch.ts';
import type { KubeApi, Leadership } from '../client/ports.ts';
import type { SourceLog } from '../../platform/log.ts';
import { sleep, addWake } from '../../platform/clock.ts';
import type { Wake } from '../../reconciler/ports.ts';

interface LeadershipDeps {
  /** Preferably a client of its own: a renewal must not wait behind a thousand other requests. */
  readonly api: KubeApi;
  readonly name: string;
  readonly identity: string;
  /** Minimum 2 s; rounded up to whole seconds. */
  readonly leaseDurationMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log?: SourceLog;
}

const RELEASE_WITHIN_MS = 1500;

export interface LeaseLeadership extends Leadership {
  transitions(): number | undefined;
}

export function createLeadership(deps: LeadershipDeps): LeaseLeadership {
  const { api, name, identity, now, log } = deps;
  const times = election.leaseTimes(Math.ceil(Math.max(SHORTEST_LEASE_MS, deps.leaseDurationMs) / 1000) * 1000);
  const instance = crypto.randomUUID();
  const requests = createLeaseRequests({ api, name, holder: identity, instance, now, ...times });
  const monotonic = (): number => performance.now();
  let candidate: election.Candidate = election.newCandidate(identity, instance, times);
  /** The term also ends at this wall-clock time: the monotonic clock stands still while a machine is suspended. */
  let wallDeadline = 0;
  let wait = new AbortController();
  let warnedReason = '';

  const holder = (): string | undefined => (typeof candidate.observed === 'object' ? candidate.observed.holder || undefined : undefined);
  const term = createTerm({
    leadsNow: () => election.leadsAt(candidate, monotonic()) && now() < wallDeadline,
    holder,
    untilChangeMs() {
      const period = election.termOf(candidate);
      if (period === undefined) return undefined;
      const at = monotonic();
      const next = at < period.from ? period.from : period.until;
      return next > at ? next - at : undefined;
    },
    identity,
    lease: name,
    log,
  });

  const watch = createLeaseWatch({
    api,
    name,
    onChange: (lease) => update(election.afterWatchEvent(candidate, lease === undefined ? 'absent' : parseLease(lease), monotonic())),
  });

  function update(next: election.Candidate): void {
    candidate = next;
    term.update();
    wait.abort();
  }

  function failed({ reason, message }: Failure, signal: AbortSignal): void {
    if (!signal.aborted && warnedReason !== reason) {
      warnedReason = reason;
      const why = reason === 'Aborted' ? `"${api.server}" did not respond within ${times.requestTimeoutMs} ms` : message;
      log?.warn({ lease: name, reason }, `Could not read or write the Lease "${name}": ${why}`);
    }
    update(election.afterFailure(candidate, monotonic(), Math.random()));
  }

  async function observe(signal: AbortSignal): Promise<void> {
    const answer = await requests.get(signal);
    if (!answer.ok) return failed(answer.failure, signal);
    warnedReason = '';
    const before = candidate;
    update(election.afterObservation(candidate, answer.value, monotonic()));
    // The watch should have reported this change, so it is dead.
    if (before.observed !== 'unknown' && before.observedAt !== candidate.observedAt) watch.stop();
  }

  async function write(step: election.LeaseWriteStep, signal: AbortSignal): Promise<void> {
    const [sentAt, sentWallAt] = [monotonic(), now()];
    const answer = await requests.write(step.before, signal);
    if (answer.ok) {
      warnedReason = '';
      wallDeadline = sentWallAt + times.renewDeadlineMs;
      watch.stop();
      update(election.afterWrite(candidate, step, { record: answer.value, sentAt, now: monotonic() }));
    } else if (answer.failure.reason === 'Conflict') update(election.afterConflict(candidate, monotonic(), Math.random()));
    else failed(answer.failure, signal);
  }

  async function release(): Promise<void> {
    const limit = AbortSignal.timeout(RELEASE_WITHIN_MS);
    while (!limit.aborted) {
      const record = election.leaseToRelease(candidate, monotonic());
      if (record === undefined) return;
      const released = await requests.release(record, limit);
      // After a conflict, the Lease may contain a renewal of ours whose response was lost.
      const answer = released.ok || released.failure.reason !== 'Conflict' ? released : await requests.get(limit);
      if (!answer.ok) {
        const { message } = answer.failure;
        log?.warn({ lease: name }, `Could not release the Lease "${name}", so it must expire before another replica leads: ${message}`);
        return;
      }
      candidate = election.afterObservation(candidate, answer.value, monotonic());
    }
  }

  return {
    leads: term.leads,
    term: term.signal,
    holder,
    transitions: () => (typeof candidate.observed === 'object' ? candidate.observed.transitions : undefined),
    changes: term.changes,
    async start(signal) {
      const stop = (): void => {
        watch.stop();
        term.end();
        wait.abort();
      };
      signal.addEventListener('abort', stop, { once: true });
      while (!signal.aborted) {
        // Only a standby replica watches: a holder would only receive events of its own writes.
        if (election.holdsLease(candidate)) watch.stop();
        else watch.start();
        const step = election.nextStep(candidate, monotonic());
        if (step.kind === 'wait') {
          wait = new AbortController();
          await sleep(Math.max(1, Math.ceil(step.until - monotonic())), wait.signal);
        } else if (step.kind === 'observe') await observe(signal);
        else await write(step, signal);
      }
      stop();
      await release();
    },
  };
}

interface TermDeps {
  /** Whether this replica holds an unexpired lease. */
  readonly leadsNow: () => boolean;
  readonly holder: () => string | undefined;
  /** Returns the milliseconds until `leadsNow` may change without an event, if known. */
  readonly untilChangeMs: () => number | undefined;
  readonly identity: string;
  readonly lease: string;
  readonly log: SourceLog | undefined;
}

const NO_TERM = AbortSignal.abort();

function createTerm({ leadsNow, holder, untilChangeMs, identity, lease, log }: TermDeps) {
  const wakes = new Set<Wake>();
  let current: AbortController | undefined;
  let publishedHolder: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  const leads = (): boolean => !isOver && leadsNow();

  /** Idempotent. Call it after every change. */
  function update(): void {
    const before = current;
    const isLeader = leads();
    if (isLeader && before === undefined) {
      current = new AbortController();
      log?.info({ lease, replica: identity }, 'This replica leads');
    } else if (!isLeader && before !== undefined) {
      current = undefined;
      if (!isOver) log?.warn({ lease, replica: identity }, 'This replica no longer leads');
      before.abort(new Error(`The term of "${identity}" has ended`));
    }
    clearTimeout(timer);
    const changeMs = isOver ? undefined : untilChangeMs();
    if (changeMs !== undefined) timer = setTimeout(update, Math.ceil(changeMs));
    const holderNow = holder();
    if (current === before && holderNow === publishedHolder) return;
    publishedHolder = holderNow;
    for (const wake of wakes) wake();
  }

  /** Timers may fire late. */
  function refresh(): void {
    if (leads() !== (current !== undefined)) update();
  }

  return {
    update,
    leads(): boolean {
      refresh();
      return current !== undefined;
    },
    signal(): AbortSignal {
      refresh();
      return current?.signal ?? NO_TERM;
    },
    changes: (wake: Wake, signal: AbortSignal): void => addWake(wakes, wake, signal),
    end(): void {
      isOver = true;
      update();
    },
  };
}
