/** Why a slot is as it is, the most important finding first; none for a slot that needs nothing. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Roles } from '../rules/assign-roles.ts';
import type { ProbeFact } from '../facts/workload-history.ts';
import { describeTrial, describeWatch, isJudged } from '../rules/evaluation.ts';
import type { Gate } from '../rules/gates.ts';
import { describeAltered } from '../rules/repair.ts';
import { describeExit } from '../rules/workload-faults.ts';
import { ASLEEP } from '../rules/wanted.ts';
import { APPLY_OUTDATED } from '../steps/plan-in-place-updates.ts';
import { WAKING } from '../steps/plan-sleep.ts';

export function listFindings(view: SlotView, roles: Roles, unwanted: Finding | undefined, gates: readonly Gate[]): readonly Finding[] {
  const trial = describeTrial(view, roles.starting) ?? describeWatch(view);
  if (unwanted === undefined && gates.length === 0 && trial === undefined && isAtRest(view, roles)) return NO_FINDINGS;
  const all = [
    unwanted,
    roles.sleeping === undefined ? undefined : ASLEEP,
    ...roles.draining.map(({ because }) => because),
    ...[...roles.draining.map(({ workload }) => workload), roles.sleeping].map(describeCount),
    trial,
    ...gates,
    findSilence(roles.serving),
    outdated(view, roles),
    silent(view, roles),
    ...altered(view),
    roles.serving?.behind === true || roles.starting?.behind === true ? APPLY_OUTDATED : undefined,
    roles.waitsFor,
  ].filter((finding) => finding !== undefined);
  return all.filter((finding, index) => all.findIndex(({ reason }) => reason === finding.reason) === index);
}

const NO_FINDINGS: readonly Finding[] = [];

function isAtRest(view: SlotView, { draining, starting, sleeping, waitsFor, serving }: Roles): boolean {
  if (draining.length > 0 || (starting ?? sleeping ?? waitsFor) !== undefined) return false;
  if (findShortage(serving, view) !== undefined || findSilence(serving) !== undefined) return false;
  return view.workloads.every(({ standing, behind }) => standing === 'current' && !behind);
}

/** What the server last counted, as far as it delays its stop or its sleep. */
function describeCount(workload: WorkloadView | undefined): Finding | undefined {
  const { count = 0, problem } = workload?.known.counted ?? {};
  if (problem !== undefined)
    return { reason: 'MetricUnusable', message: `Whether other clients use the server is not known, so they are not awaited: ${problem}` };
  if (count === 0) return undefined;
  return {
    reason: 'OtherClients',
    message: `The server has ${count} requests of other clients, which may end before it is stopped or put to sleep`,
  };
}

function outdated({ template }: SlotView, { serving }: Roles): Finding | undefined {
  if (serving?.standing !== 'outdated') return undefined;
  const message = `Revision "${serving.fact.revision}" serves until "${template?.revision ?? ''}" does`;
  return { reason: 'RevisionOutdated', message };
}

/** Why the starting workload does not answer, or which replicas of the serving one are missing. */
function silent(view: SlotView, { serving, starting }: Roles): Finding | undefined {
  if (starting === undefined) return findShortage(serving, view);
  if (isJudged(starting, view)) return undefined;
  const { reason, message } = whySilent(starting);
  const mayNotReplace = starting.fact.waitingReason?.kind === 'placement' && view.spec.lifecycle.swap === 'blue-green';
  const note = mayNotReplace && serving !== undefined ? '; as "swap" is "blue-green", the old workload does not make room for it' : '';
  return { reason, message: `${message}${note}` };
}

function altered(view: SlotView): readonly Finding[] {
  if (view.spec.lifecycle.drift === 'ignore') return [];
  return view.workloads.filter(({ alive, standing }) => alive && standing === 'altered').map((workload) => describeAltered(workload, view));
}

/** Set where the serving workload did not answer its last probe at all: whether it serves is not known. */
export function findSilence(serving: WorkloadView | undefined): Finding | undefined {
  const probe = serving?.known.probe;
  if (probe?.status !== 'silent') return undefined;
  return { reason: 'ProbeUnanswered', message: `The server did not answer its last probe; after three it is replaced: ${probe.message}` };
}

/** Set where the workload answers, but with fewer replicas than it should. */
export function findShortage(serving: WorkloadView | undefined, { spec }: SlotView): Finding | undefined {
  if (serving === undefined || serving.standing === 'outdated') return undefined;
  const { replicas, missing } = serving.fact;
  if (replicas === undefined && missing !== undefined) return { reason: missing.reason, message: missing.message };
  if (replicas === undefined || replicas.ready >= spec.cluster.replicas) return undefined;
  const why = missing === undefined ? '' : `: ${missing.message}`;
  return { reason: 'ReplicasNotReady', message: `${replicas.ready} of ${spec.cluster.replicas} replicas answer${why}` };
}

/** Why a workload that should answer does not. */
export function whySilent({ fact, known }: WorkloadView): Finding {
  const { waitingReason, fetching, phase, endpoints, exit } = fact;
  if (known.probe?.status === 'asleep') return WAKING;
  if (waitingReason !== undefined) return { reason: waitingReason.reason, message: waitingReason.message };
  if (fetching !== undefined) return { reason: 'Fetching', message: fetching };
  if (phase === 'created' && exit !== undefined) return describeExit(exit);
  if (phase === 'running' && endpoints.length === 0) {
    return { reason: 'NoReplicaReady', message: 'The workload runs, and none of its replicas is ready yet' };
  }
  return { reason: 'ProbeNotPassed', message: describeSilence(known.probe) };
}

/** A probe that passes has no message: then the cluster does not send requests to the server yet. */
export function describeSilence(probe: ProbeFact | undefined): string {
  if (probe === undefined) return 'The workload has just been started';
  return probe.message === '' ? 'The server does not answer yet' : `The server does not answer yet: ${probe.message}`;
}
