/**
 * What is wrong with a workload. A fault ends it; a crash that its runtime handles only counts:
 *
 *     its process ended, and the runtime does not restart it   fault "crash"
 *     it did not answer within "start_timeout"                 fault "start-timeout"
 *     it answers, and its model computes nonsense              fault "probe", before it gets a request
 *     it answered once, and answers nothing at all any more,   fault "probe" after three probes, within 30 s
 *     or answers only "GET" and computes nothing
 *     it answered once, and its probes fail or its model       fault "probe", later if it has requests
 *     does not answer
 *     it could not be put to sleep, or not be woken            fault "probe"
 *     its process ended, and the runtime restarts it           counted; given up after a crash loop
 *
 * Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import type { Work, WorkloadExit } from '../../ports.ts';
import type { Fault } from '../facts/actions.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { exitId, isSound } from '../facts/workload-history.ts';
import { crashLooping, failedFinally } from './gates.ts';

/** Failed probes in a row that make a workload unhealthy; without any answer, whether it has requests or not. */
const UNHEALTHY_AFTER = 3;
/** A burst of requests may delay a probe's connection while answers still flow. Shorter than three probes. */
const HEARD_MS = 10_000;
/** A server that computes one answer at a time may fail probes; tolerated this long with requests in flight. */
const BUSY_PATIENCE_MS = 120_000;
/** A live server without answers gets as long as a request may wait for its first byte, while it has requests. */
const STUCK_PATIENCE_MS = 600_000;

/** Why the workload must be stopped; undefined where it may stay. */
export function findFault(workload: WorkloadView, view: SlotView): Fault | undefined {
  return (
    exited(workload) ?? answersNonsense(workload) ?? startTimedOut(workload, view) ?? sleepFailed(workload) ?? probeFailing(workload, view)
  );
}

/** It has passed a probe, is awake, and is not unhealthy since. It can take requests while it has an endpoint. */
export function isPassing(workload: WorkloadView, view: SlotView): boolean {
  const { fact, known, sleepUnderWay } = workload;
  if (fact.phase !== 'running' || known.probe?.passed !== true || known.probe.status === 'asleep' || known.probe.mustPass === true)
    return false;
  return sleepUnderWay === undefined && findFault(workload, view) === undefined;
}

/** It answered before and no longer does, however cheap the request: frozen or gone, as are its requests. */
export function isSilent({ fact, known: { probe }, heardAt }: WorkloadView, now: number): boolean {
  if (fact.endpoints.length === 0 || probe?.passed !== true || probe.consecutiveSilences < UNHEALTHY_AFTER) return false;
  return heardAt === undefined || now - heardAt >= HEARD_MS;
}

/** Share of one core. Answering `GET` takes less, and reading evicted weights from a disk more. */
const IDLE_SHARE = 0.05;

/**
 * Whether a server that answers `GET` and no request is hung rather than busy: it computed nothing in `ms`. Only
 * counted time proves that, so a hung server on other devices is given more time:
 *
 *     cpu, cuda   time on the CPU, as CUDA's threads spin while they wait
 *     vulkan      time on CPU and device, where the kernel counts the latter
 */
export function isHung(backend: Backend, before: Work | undefined, after: Work | undefined, ms: number): boolean {
  if (before === undefined || after === undefined) return false;
  const isCounted = backend === 'cpu' || backend === 'cuda' || (backend === 'vulkan' && before.deviceMs !== undefined);
  return isCounted && after.cpuMs - before.cpuMs + (after.deviceMs ?? 0) - (before.deviceMs ?? 0) < ms * IDLE_SHARE;
}

/** A crash that the runtime handles with a restart, and that has not been counted yet. */
export function crashedInPlace({ fact: { phase, exit }, known }: WorkloadView): (Fault & { readonly exitId: string }) | undefined {
  if (phase === 'exited' || exit === undefined || known.notedExits.includes(exitId(exit))) return undefined;
  return { kind: 'crash', exitId: exitId(exit), ...describeExit(exit) };
}

/** Why a workload that its runtime keeps restarting is stopped; undefined if it is not, or once it answers. */
export function whyGivenUp({ fact, known }: WorkloadView, view: SlotView): Finding | undefined {
  if (known.probe?.passed === true) return undefined;
  const crashed = view.failures.some(({ workload, restartedInPlace }) => restartedInPlace === true && workload === fact.id);
  return crashed ? (failedFinally(view) ?? crashLooping(view)) : undefined;
}

export function describeExit(exit: WorkloadExit | undefined): Finding {
  const outOfMemory = exit?.outOfMemory === true;
  const why = outOfMemory ? 'out of memory' : `exit code ${exit?.code ?? 'unknown'}`;
  const detail = exit?.message === undefined || exit.message === '' ? '' : `: ${exit.message}`;
  return { reason: outOfMemory ? 'OutOfMemory' : 'Crashed', message: `The process of the server ended unexpectedly (${why})${detail}` };
}

function exited({ fact: { phase, exit } }: WorkloadView): Fault | undefined {
  return phase === 'exited' ? { kind: 'crash', ...describeExit(exit) } : undefined;
}

/** A server unreachable for longer is probed again before it is given up: it may have become ready meanwhile. */
const STALE_PROBE_MS = 5000;

/** It has never passed. Waiting would not change its answers, and it may hold memory that the old workload needs. */
function answersNonsense({ fact, known: { probe } }: WorkloadView): Fault | undefined {
  if (fact.phase !== 'running' || fact.endpoints.length === 0 || probe?.status !== 'nonsense' || probe.passed) return undefined;
  return { kind: 'probe', reason: 'ModelAnswersNonsense', message: probe.message };
}

/** Only the leader knows since when the workload has been starting. */
function startTimedOut({ fact, known }: WorkloadView, { spec, now, leads }: SlotView): Fault | undefined {
  const { startTimeoutMs } = spec.lifecycle;
  if (!leads || fact.phase === 'exited' || known.probe?.passed === true) return undefined;
  if (known.startCountsFrom === undefined || now - known.startCountsFrom < startTimeoutMs) return undefined;
  const askable = fact.phase === 'running' && fact.endpoints.length > 0;
  if (askable && now - (known.probe?.lastAt ?? 0) > STALE_PROBE_MS) return undefined;
  const last = known.probe === undefined ? '' : `; last probe: ${known.probe.message}`;
  const message = `The server did not answer within ${startTimeoutMs / 1000} s of its start ("start_timeout")${last}`;
  return { kind: 'start-timeout', reason: 'StartTimeout', message };
}

/** Nobody knows what such a server can still do. */
const sleepFailed = ({ known: { sleeps } }: WorkloadView): Fault | undefined => sleeps?.fault && { kind: 'probe', ...sleeps.fault };

/** Without an endpoint there is nothing to probe, so that silence means nothing. */
function probeFailing(workload: WorkloadView, { now }: SlotView): Fault | undefined {
  const { fact, known, inFlight } = workload;
  const { probe } = known;
  if (fact.endpoints.length === 0 || probe === undefined || !probe.passed || isSound(probe.status)) return undefined;
  const silentMs = now - probe.since;
  const busy = inFlight > 0;
  const dead = probe.consecutiveFailures >= UNHEALTHY_AFTER && (!busy || silentMs >= BUSY_PATIENCE_MS);
  const stuck = silentMs >= (busy ? STUCK_PATIENCE_MS : BUSY_PATIENCE_MS);
  if (!isSilent(workload, now) && !dead && !stuck) return undefined;
  const why = fact.waitingReason?.message ?? `last probe: ${probe.message}`;
  const message = `The server gave no answer for ${Math.round(silentMs / 1000)} s; ${why}`;
  return { kind: 'probe', reason: 'ProbeFailing', message };
}
