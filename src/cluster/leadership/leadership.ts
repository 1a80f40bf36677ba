/** Runs for office on a Lease: sends what `decide/lease-decision.ts` decides, and tells who asks whether this replica leads now. */
import type { Wake } from '../../reconciler/ports.ts';
import type { Failure } from '../../schema/failure.ts';
import type { Reason } from '../../schema/reasons.ts';
import {
  claimed,
  failed,
  heard,
  holds,
  leadPeriod,
  leadsAt,
  leaseTimes,
  looked,
  newCandidate,
  nextStep,
  outrun,
  toRelease,
  type Candidate,
  type LeaseStep,
} from './decide/lease-decision.ts';
import { claimLease, readLease, releaseLease, SHORTEST_LEASE_MS, type LeaseClaim } from './decide/lease-record.ts';
import { watchLease } from './lease-watch.ts';
import type { KubeApi, KubeObject, Leadership } from '../client/ports.ts';
import { LEASES } from '../client/resource-types.ts';
import type { SourceLog } from '../../platform/log.ts';

export interface LeadershipDeps {
  /** Best one of its own: a renewal that waits behind a thousand other requests comes too late. */
  readonly api: KubeApi;
  /** The Lease's name. */
  readonly name: string;
  /** This replica's name; stands in the Lease for all to see. */
  readonly identity: string;
  /** At least 2 s; whole seconds. */
  readonly leaseDurationMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Milliseconds that only grow. Default: the process's own. */
  readonly monotonic?: () => number;
  readonly log?: SourceLog;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** What giving the lease back may take: the next one then waits for the rest of the duration. */
const RELEASE_WITHIN_MS = 1500;
/** Failures that say "somebody else wrote first". A namespace that is gone says `NotFound` to who creates, which is none of them. */
const OUTRUN = { create: new Set<Reason>(['Conflict', 'AlreadyExists']), replace: new Set<Reason>(['Conflict', 'NotFound']) };

export function createLeadership(deps: LeadershipDeps): Leadership {
  const { api, name, identity, now, log, monotonic = () => performance.now(), random = Math.random } = deps;
  const times = leaseTimes(Math.ceil(Math.max(SHORTEST_LEASE_MS, deps.leaseDurationMs) / 1000) * 1000);
  const ended = AbortSignal.abort();
  const wakes = new Set<Wake>();
  const instance = crypto.randomUUID();
  let candidate: Candidate = newCandidate(identity, instance, times);
  /** Wall clock beyond which it does not lead either: the monotonic one stands still while a machine sleeps. */
  let wallUntil = 0;
  let term: AbortController | undefined;
  let told: { readonly leads: boolean; readonly holder: string | undefined } = { leads: false, holder: undefined };
  let stopping = false;
  let boundary: NodeJS.Timeout | undefined;
  let watch: AbortController | undefined;
  let nudge: () => void = () => undefined;
  let complaint = '';

  const leadsNow = (): boolean => !stopping && leadsAt(candidate, monotonic()) && now() < wallUntil;
  const holder = (): string | undefined => (typeof candidate.found === 'object' ? candidate.found.holder || undefined : undefined);
  const claim = (): LeaseClaim => ({ name, holder: identity, instance, durationMs: times.durationMs, nowMs: now() });

  /** Brings what others see in line with what is known now. Idempotent; called after every change and when a period begins or ends. */
  function settle(): void {
    const leads = leadsNow();
    if (leads && term === undefined) {
      term = new AbortController();
      log?.info({ lease: name, replica: identity }, 'This replica leads');
    } else if (!leads && term !== undefined) {
      const over = term;
      term = undefined;
      if (!stopping) log?.warn({ lease: name, replica: identity }, 'This replica does not lead any more');
      over.abort(new Error(`The term of "${identity}" is over`));
    }
    armBoundary();
    const next = { leads, holder: holder() };
    if (next.leads === told.leads && next.holder === told.holder) return;
    told = next;
    for (const wake of wakes) wake();
  }

  function armBoundary(): void {
    clearTimeout(boundary);
    const period = stopping ? undefined : leadPeriod(candidate);
    if (period === undefined) return;
    const at = monotonic();
    const next = at < period.from ? period.from : period.until;
    if (next > at) boundary = setTimeout(settle, Math.ceil(next - at));
  }

  function take(next: Candidate): void {
    candidate = next;
    settle();
    nudge();
  }

  function complain({ reason, message }: Failure): void {
    if (stopping || complaint === reason) return;
    complaint = reason;
    const why = reason === 'Aborted' ? `"${api.server}" did not answer within ${times.requestMs} ms` : message;
    log?.warn({ lease: name, reason }, `Mend the way to the Lease "${name}": ${why}`);
  }

  async function look(signal: AbortSignal): Promise<void> {
    const answer = await within(times.requestMs, signal, (bounded) => api.get(LEASES, name, bounded));
    const before = candidate;
    if (answer.ok) take(looked(candidate, readLease(answer.value), monotonic()));
    else if (answer.failure.reason === 'NotFound') take(looked(candidate, 'absent', monotonic()));
    else {
      complain(answer.failure);
      take(failed(candidate, monotonic(), random()));
      return;
    }
    complaint = '';
    // The watch should have told: it is dead.
    if (before.found !== 'unknown' && before.foundAt !== candidate.foundAt) endWatch();
  }

  async function write(step: Extract<LeaseStep, { kind: 'claim' }>, signal: AbortSignal): Promise<void> {
    const sentAt = monotonic();
    const sentWall = now();
    const manifest = claimLease(step.before, claim());
    const verb = step.before === undefined ? 'create' : 'replace';
    const answer = await within(times.requestMs, signal, (bounded) => api[verb](LEASES, manifest, bounded));
    if (answer.ok) {
      complaint = '';
      wallUntil = sentWall + times.leadMs;
      endWatch();
      take(claimed(candidate, step, readLease(answer.value), sentAt, monotonic()));
    } else if (OUTRUN[verb].has(answer.failure.reason)) take(outrun(candidate, monotonic(), random()));
    else {
      complain(answer.failure);
      take(failed(candidate, monotonic(), random()));
    }
  }

  function endWatch(): void {
    watch?.abort();
    watch = undefined;
  }

  /** Only who waits watches: a holder would hear of its own writes. */
  function keepWatch(): void {
    if (holds(candidate)) endWatch();
    else if (watch === undefined) {
      const own = new AbortController();
      watch = own;
      const onNews = (lease: KubeObject | undefined): void => {
        if (!own.signal.aborted) take(heard(candidate, lease === undefined ? 'absent' : readLease(lease), monotonic()));
      };
      void watchLease({ api, name, onNews, random }, own.signal);
    }
  }

  async function rest(until: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        nudge = () => undefined;
        resolve();
      };
      nudge = end;
      const timer = setTimeout(end, Math.max(1, Math.ceil(until - monotonic())));
      signal.addEventListener('abort', end, { once: true });
    });
  }

  async function release(): Promise<void> {
    const limit = AbortSignal.timeout(RELEASE_WITHIN_MS);
    for (
      let record = toRelease(candidate, monotonic());
      record !== undefined && !limit.aborted;
      record = toRelease(candidate, monotonic())
    ) {
      const answer = await api.replace(LEASES, releaseLease(record, claim()), limit);
      if (answer.ok) {
        candidate = looked(candidate, readLease(answer.value), monotonic());
        return;
      }
      // A renewal whose answer did not come may stand there.
      const present = OUTRUN.replace.has(answer.failure.reason) ? await api.get(LEASES, name, limit) : answer;
      if (!present.ok) {
        const { message } = present.failure;
        log?.warn({ lease: name }, `Another replica takes over only when the lease runs out, since it could not be given back: ${message}`);
        return;
      }
      candidate = looked(candidate, readLease(present.value), monotonic());
    }
  }

  return {
    leads() {
      const leads = leadsNow();
      if (leads !== told.leads) settle();
      return leads;
    },
    term() {
      if (leadsNow() !== told.leads) settle();
      return term?.signal ?? ended;
    },
    holder,
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
    },
    async start(signal) {
      const stop = (): void => {
        stopping = true;
        endWatch();
        settle();
      };
      signal.addEventListener('abort', stop, { once: true });
      while (!signal.aborted) {
        keepWatch();
        const step = nextStep(candidate, monotonic());
        if (step.kind === 'look') await look(signal);
        else if (step.kind === 'claim') await write(step, signal);
        else await rest(step.until, signal);
      }
      stop();
      await release();
    },
  };
}

/** Gives a request its own signal, which aborts with the given one or when the time is over, and leaves nothing behind on the given one. */
async function within<T>(ms: number, signal: AbortSignal, send: (bounded: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const abort = (): void => own.abort();
  const timer = setTimeout(abort, ms);
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await send(own.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
