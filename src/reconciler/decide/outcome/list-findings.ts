/** Why a slot is as it is: what is left to say of it, the most telling first; nothing of a slot that is as it shall be. Pure. */
import type { Roles } from '../rules/assign-roles.ts';
import { mismatchText, whySilent, type Gate } from '../rules/checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

export function listFindings(view: SlotView, roles: Roles, unwanted: Finding | undefined, gates: readonly Gate[]): readonly Finding[] {
  const { waitsFor } = roles;
  if (unwanted === undefined && gates.length === 0 && isAtRest(view, roles)) return NO_FINDINGS;
  const all = [
    ...(unwanted === undefined ? [] : [unwanted]),
    ...roles.draining.map(({ because }) => because),
    ...gates,
    ...outdated(view, roles),
    ...silent(view, roles),
    ...altered(view),
    ...behind(roles),
    ...(waitsFor ? [waitsFor] : []),
  ];
  return all.filter((finding, index) => all.findIndex(({ reason }) => reason === finding.reason) === index);
}

const NO_FINDINGS: readonly Finding[] = [];

function isAtRest(view: SlotView, { draining, starting, waitsFor, serving }: Roles): boolean {
  if (draining.length > 0 || starting !== undefined || waitsFor !== undefined || findShortage(serving, view) !== undefined) return false;
  return view.workloads.every(({ standing, behind: late }) => standing === 'current' && !late);
}

function outdated(view: SlotView, { serving }: Roles): readonly Finding[] {
  if (serving?.standing !== 'outdated') return [];
  const message = `Revision "${serving.fact.revision}" serves until "${view.template?.revision ?? ''}" does`;
  return [{ reason: 'RevisionOutdated', message }];
}

/** Of what is to answer, and of replicas that are missing beside those that do. */
function silent(view: SlotView, { serving, starting }: Roles): readonly Finding[] {
  if (starting === undefined) {
    const shortage = findShortage(serving, view);
    return shortage === undefined ? [] : [shortage];
  }
  const why = whySilent(starting);
  const waits = starting.fact.waitingReason?.kind === 'placement' && serving !== undefined && view.spec.lifecycle.swap === 'blue-green';
  return [waits ? { ...why, message: `${why.message}; as "swap" is "blue-green", the old one does not make room for it` } : why];
}

/** It answers, and not with all its replicas. */
export function findShortage(serving: WorkloadView | undefined, { spec }: SlotView): Finding | undefined {
  if (serving === undefined || serving.standing === 'outdated') return undefined;
  const { replicas, missing } = serving.fact;
  if (replicas === undefined || replicas.ready >= spec.cluster.replicas) return undefined;
  const why = missing === undefined ? '' : `: ${missing.message}`;
  return { reason: 'ReplicasNotReady', message: `${replicas.ready} of ${spec.cluster.replicas} replicas answer${why}` };
}

function altered({ workloads, spec }: SlotView): readonly Finding[] {
  if (spec.lifecycle.drift === 'ignore') return [];
  return workloads
    .filter(({ alive, standing }) => alive && standing === 'altered')
    .map((workload) => ({ reason: 'WorkloadAltered', message: mismatchText(workload) }));
}

function behind({ serving, starting }: Roles): readonly Finding[] {
  const late = [serving, starting].some((workload) => workload?.behind === true);
  return late ? [{ reason: 'ApplyOutdated', message: 'An edit changed what needs no new workload' }] : [];
}
