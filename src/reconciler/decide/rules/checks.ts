/**
 * The tiny checks that decisions are made of, in the order in which they are asked. Each looks at one slot or one workload and answers
 * what is violated, or nothing. Reading the lists at the end is reading the rules.
 */
import { DRIFT_REPAIR_LIMIT, driftRepairs, finalFailure, isCrashLoop, nextAttemptAt } from './backoff.ts';
import { exitId } from '../facts/exit-id.ts';
import type { Fault, Finding } from '../facts/finding.ts';
import { sizeText } from '../outcome/quantity-text.ts';
import type { WorkloadExit } from '../../ports.ts';
import type { MemoryVerdict } from './share-memory.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** Why nothing may be started now. `stalled`: a person must act. `waiting`: time or the loop itself will mend it. */
export type Gate = Finding &
  (
    | { readonly kind: 'stalled' | 'memory' }
    | { readonly kind: 'waiting'; /** Unix milliseconds. */ readonly until?: number }
    | { readonly kind: 'pulling'; readonly what: 'image' | 'model' }
  );

/** Failed probes in a row that make a workload unhealthy. */
const UNHEALTHY_AFTER = 3;
/** A server that computes one answer at a time may not answer a probe before it is done: with requests in flight, silence is borne this long. */
const BUSY_PATIENCE_MS = 120_000;
/** A server that says it is alive, and answers nothing: as long as a request may wait for its first byte, when there are requests. */
const STUCK_PATIENCE_MS = 600_000;

// ---- whether a slot is wanted ----

function notEnabled({ spec }: SlotView): Finding | undefined {
  return spec.enabled ? undefined : { reason: 'Disabled', message: 'It is not enabled' };
}

function noReplicas({ network, spec }: SlotView): Finding | undefined {
  if (network !== 'pods' || spec.cluster.replicas > 0) return undefined;
  return { reason: 'NoReplicas', message: 'It is scaled to zero replicas' };
}

function notAskedFor(view: SlotView): Finding | undefined {
  const { spec, lastActiveAt, waiting, inFlight } = view;
  if (isKeptByLeader(view)) return undefined;
  if (spec.load !== 'on-demand' || lastActiveAt !== undefined || waiting > 0 || inFlight > 0) return undefined;
  return { reason: 'NotAskedFor', message: 'It loads on demand, and no request has asked for it' };
}

function idleTimedOut(view: SlotView): Finding | undefined {
  const { spec, lastActiveAt, waiting, inFlight, now } = view;
  const { idleTimeoutMs } = spec.lifecycle;
  if (isKeptByLeader(view)) return undefined;
  if (lastActiveAt === undefined || waiting > 0 || inFlight > 0 || now - lastActiveAt < idleTimeoutMs) return undefined;
  return { reason: 'IdleTimedOut', message: `No request for ${idleTimeoutMs / 1000} s; the next one loads it again` };
}

/** Only the one that leads knows of all requests; what it lets run is of use to somebody. */
function isKeptByLeader({ leads, workloads }: SlotView): boolean {
  return !leads && workloads.some(({ alive }) => alive);
}

// ---- whether a workload may be started ----

function providerMissing({ providerKnown, spec }: SlotView): Gate | undefined {
  if (providerKnown) return undefined;
  return {
    kind: 'stalled',
    reason: 'ProviderMissing',
    message: `Use another provider: "${spec.provider}" is not part of this installation`,
  };
}

function imageUnknown({ imagesUsed, image, spec }: SlotView): Gate | undefined {
  if (!imagesUsed || image !== undefined) return undefined;
  const message = `Build or name a toolbox image for provider "${spec.provider}" with backend "${spec.backend}": the manifest has none`;
  return { kind: 'stalled', reason: 'ImageUnknown', message };
}

function modelMissing({ model }: SlotView): Gate | undefined {
  return model?.kind === 'missing' ? { kind: 'stalled', reason: 'ModelMissing', message: model.message } : undefined;
}

function needsPerson({ failures, imagePresent, model }: SlotView): Gate | undefined {
  const attempt = finalFailure(failures, { image: imagePresent, model: model?.kind === 'present' });
  if (attempt === undefined) return undefined;
  return { kind: 'stalled', reason: attempt.failure.reason, message: attempt.failure.message };
}

function crashLooping({ failures, slot, leads }: SlotView): Gate | undefined {
  // Whoever does not lead counts crashes for the day it does.
  if (!leads || !isCrashLoop(failures)) return undefined;
  const last = failures.at(-1)?.failure.message ?? '';
  const message = `Edit it or run "svcctl slot restart ${slot.name}": it failed five times within ten minutes. ${last}`;
  return { kind: 'stalled', reason: 'CrashLoop', message };
}

function backingOff({ failures, workloads, now }: SlotView): Gate | undefined {
  const until = nextAttemptAt(failures);
  if (until === undefined) return undefined;
  const last = failures.findLast(({ kind }) => kind !== 'drift');
  if (last === undefined || now >= until) return undefined;
  // What its runtime starts again backs off there.
  if (last.inPlace === true && workloads.some(({ fact, alive }) => alive && fact.id === last.workload)) return undefined;
  return { kind: 'waiting', reason: last.failure.reason, message: last.failure.message, until };
}

function modelNotLooked({ model }: SlotView): Gate | undefined {
  return model === undefined ? { kind: 'waiting', reason: 'ModelNotLookedUp', message: 'The model store has not answered yet' } : undefined;
}

function imageNotPresent({ image, imagePresent }: SlotView): Gate | undefined {
  if (image === undefined || imagePresent) return undefined;
  return { kind: 'pulling', what: 'image', reason: 'ImageNotPresent', message: `Image "${image.reference}" is not here` };
}

function modelNotPresent({ model, spec }: SlotView): Gate | undefined {
  if (model?.kind !== 'pullable') return undefined;
  const size = model.sizeBytes === undefined ? '' : ` (${sizeText(model.sizeBytes)})`;
  return { kind: 'pulling', what: 'model', reason: 'ModelNotPresent', message: `Model "${spec.model.default}"${size} is not here` };
}

export function insufficientMemory(verdict: MemoryVerdict | undefined): Gate | undefined {
  if (verdict === undefined || verdict.admitted || verdict.budgetBytes === undefined) return undefined;
  const names = verdict.ahead.map((name) => `"${name}"`).join(', ');
  const others = verdict.ahead.length === 0 ? '' : `, and ${names} before it hold ${sizeText(verdict.aheadBytes)}`;
  return {
    kind: verdict.mayWait ? 'waiting' : 'memory',
    reason: 'InsufficientMemory',
    message: `It needs ${sizeText(verdict.bytes)} of the ${sizeText(verdict.budgetBytes)} there are${others}`,
  };
}

// ---- what is wrong with a workload ----

function workloadExited({ fact: { phase, exit } }: WorkloadView): Fault | undefined {
  return phase === 'exited' ? { kind: 'crash', ...exitTold(exit) } : undefined;
}

function exitTold(exit: WorkloadExit | undefined): Finding {
  const why = exit?.outOfMemory === true ? 'it ran out of memory' : `exit code ${exit?.code ?? 'unknown'}`;
  const detail = exit?.message === undefined || exit.message === '' ? '' : `: ${exit.message}`;
  return {
    reason: exit?.outOfMemory === true ? 'OutOfMemory' : 'Crashed',
    message: `Its process ended by itself (${why})${detail}`,
  };
}

/** It crashed, and its runtime starts it again by itself; undefined, too, when that was taken note of. */
export function crashedInPlace({ fact: { phase, exit }, known }: WorkloadView): (Fault & { readonly exitId: string }) | undefined {
  if (phase === 'exited' || exit === undefined || exitId(exit) === known.notedExit) return undefined;
  return { kind: 'crash', exitId: exitId(exit), ...exitTold(exit) };
}

/** Why what crashed in place is no longer left to its runtime; undefined: it is, or it is back. */
export function givenUp({ fact, known }: WorkloadView, view: SlotView): Finding | undefined {
  if (known.probe?.passed === true) return undefined;
  const crashed = view.failures.some(({ workload, inPlace }) => inPlace === true && workload === fact.id);
  return crashed ? (needsPerson(view) ?? crashLooping(view)) : undefined;
}

function startTimedOut({ fact, known }: WorkloadView, { spec, now, leads }: SlotView): Fault | undefined {
  const { startTimeoutMs } = spec.lifecycle;
  // Since when it starts is a matter of who started it.
  if (!leads || fact.phase === 'exited' || known.probe?.passed === true) return undefined;
  if (known.startCountsFrom === undefined || now - known.startCountsFrom < startTimeoutMs) return undefined;
  const last = known.probe === undefined ? '' : `; the last probe said: ${known.probe.message}`;
  const message = `It did not answer within ${startTimeoutMs / 1000} s of its start ("start_timeout")${last}`;
  return { kind: 'start-timeout', reason: 'StartTimeout', message };
}

function probeFailing({ fact, known, inFlight }: WorkloadView, { now }: SlotView): Fault | undefined {
  const { probe } = known;
  // Where nothing can be asked, silence says nothing.
  if (fact.endpoints.length === 0) return undefined;
  if (probe === undefined || !probe.passed || probe.status === 'passing') return undefined;
  const silentMs = now - probe.since;
  const busy = inFlight > 0;
  const dead = probe.consecutiveFailures >= UNHEALTHY_AFTER && (!busy || silentMs >= BUSY_PATIENCE_MS);
  const stuck = silentMs >= (busy ? STUCK_PATIENCE_MS : BUSY_PATIENCE_MS);
  if (!dead && !stuck) return undefined;
  const message = `It stopped serving ${Math.round(silentMs / 1000)} s ago; the last probe said: ${probe.message}`;
  return { kind: 'probe', reason: 'ProbeFailing', message };
}

/** It is not what is wanted, but it works. */
export function mismatch(workload: WorkloadView, view: SlotView): Finding | undefined {
  if (workload.standing === 'outdated') {
    const wanted = view.template?.revision ?? '';
    return { reason: 'RevisionOutdated', message: `Revision "${workload.fact.revision}" runs and "${wanted}" is wanted` };
  }
  if (workload.standing !== 'altered' || workload.updatable) return undefined;
  return { reason: 'WorkloadAltered', message: mismatchText(workload) };
}

export function mismatchText({ drift }: WorkloadView): string {
  return `It was altered from outside: ${drift.join('; ')}`;
}

/** Whether an altered workload shall be replaced, or mended. */
export function repairsDrift({ spec, failures }: SlotView): boolean {
  return spec.lifecycle.drift === 'repair' && driftRepairs(failures) < DRIFT_REPAIR_LIMIT;
}

/** Why a workload that shall answer does not, or not with all its replicas. */
export function whySilent({ fact, known }: WorkloadView): Finding {
  const { waitingReason, fetching, phase, endpoints, exit } = fact;
  if (waitingReason !== undefined) return { reason: waitingReason.reason, message: waitingReason.message };
  if (fetching !== undefined) return { reason: 'Fetching', message: fetching };
  if (phase === 'created' && exit !== undefined) return { ...exitTold(exit) };
  if (phase === 'running' && endpoints.length === 0) {
    return { reason: 'NoReplicaReady', message: 'It runs, and none of its replicas is ready yet' };
  }
  const message = known.probe === undefined ? 'It has just been started' : `It does not answer yet: ${known.probe.message}`;
  return { reason: 'ProbeNotPassed', message };
}

const WANTED_CHECKS = [notEnabled, noReplicas, notAskedFor, idleTimedOut] as const;

const GATE_CHECKS = [
  providerMissing,
  imageUnknown,
  modelMissing,
  needsPerson,
  crashLooping,
  backingOff,
  modelNotLooked,
  imageNotPresent,
  modelNotPresent,
] as const;

const FAULT_CHECKS = [workloadExited, startTimedOut, probeFailing] as const;

/** Why a slot is not wanted now; undefined: it is. */
export function whyNotWanted(view: SlotView): Finding | undefined {
  return first(WANTED_CHECKS, (check) => check(view));
}

/** What keeps a workload from being started, all of it, the gravest first. */
export function findGates(view: SlotView): readonly Gate[] {
  const gates: Gate[] = [];
  for (const check of GATE_CHECKS) {
    const gate = check(view);
    if (gate !== undefined) gates.push(gate);
  }
  return gates;
}

/** Why a workload must go through its own fault; undefined: it may stay. */
export function findFault(workload: WorkloadView, view: SlotView): Fault | undefined {
  return first(FAULT_CHECKS, (check) => check(workload, view));
}

/** It passed, and has not failed so often since that it is unhealthy. It is ready for traffic while it has an endpoint. */
export function isPassing(workload: WorkloadView, view: SlotView): boolean {
  return workload.fact.phase === 'running' && workload.known.probe?.passed === true && findFault(workload, view) === undefined;
}

function first<Check, Answer>(checks: readonly Check[], ask: (check: Check) => Answer | undefined): Answer | undefined {
  for (const check of checks) {
    const answer = ask(check);
    if (answer !== undefined) return answer;
  }
  return undefined;
}
