/** Why a slot is as it is: what is left to say of it, the most telling first; nothing of a slot that is as it shall be. Pure. */
import type { Cast } from '../rules/cast-roles.ts';
import { mismatchText, whySilent, type Gate } from '../rules/checks.ts';
import type { Finding } from '../facts/facts.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

export function listFindings(view: SlotView, cast: Cast, unwanted: Finding | undefined, gates: readonly Gate[]): readonly Finding[] {
  const { waitsFor } = cast;
  if (unwanted === undefined && gates.length === 0 && isAtRest(view, cast)) return NO_FINDINGS;
  const all = [
    ...(unwanted === undefined ? [] : [unwanted]),
    ...cast.leaving.map(({ because }) => because),
    ...gates,
    ...outdated(view, cast),
    ...silent(view, cast),
    ...altered(view),
    ...behind(cast),
    ...(waitsFor ? [waitsFor] : []),
  ];
  return all.filter((finding, index) => all.findIndex(({ name }) => name === finding.name) === index);
}

const NO_FINDINGS: readonly Finding[] = [];

function isAtRest(view: SlotView, { leaving, coming, waitsFor, answering }: Cast): boolean {
  if (leaving.length > 0 || coming !== undefined || waitsFor !== undefined || findShortage(answering, view) !== undefined) return false;
  return view.workloads.every(({ standing, behind: late }) => standing === 'current' && !late);
}

function outdated(view: SlotView, { answering }: Cast): readonly Finding[] {
  if (answering?.standing !== 'outdated') return [];
  const message = `Revision "${answering.fact.revision}" serves until "${view.template?.revision ?? ''}" does`;
  return [{ name: 'revisionOutdated', message }];
}

/** Of what is to answer, and of replicas that are missing beside those that do. */
function silent(view: SlotView, { answering, coming }: Cast): readonly Finding[] {
  if (coming === undefined) {
    const shortage = findShortage(answering, view);
    return shortage === undefined ? [] : [shortage];
  }
  const why = whySilent(coming);
  const waits = coming.fact.trouble?.kind === 'placement' && answering !== undefined && view.spec.lifecycle.swap === 'blue-green';
  return [waits ? { ...why, message: `${why.message}; as "swap" is "blue-green", the old one does not make room for it` } : why];
}

/** It answers, and not with all its replicas. */
export function findShortage(answering: WorkloadView | undefined, { spec }: SlotView): Finding | undefined {
  if (answering === undefined || answering.standing === 'outdated') return undefined;
  const { replicas, missing } = answering.fact;
  if (replicas === undefined || replicas.ready >= spec.cluster.replicas) return undefined;
  const why = missing === undefined ? '' : `: ${missing.message}`;
  return { name: 'replicasNotReady', message: `${replicas.ready} of ${spec.cluster.replicas} replicas answer${why}` };
}

function altered({ workloads, spec }: SlotView): readonly Finding[] {
  if (spec.lifecycle.drift === 'ignore') return [];
  return workloads
    .filter(({ alive, standing }) => alive && standing === 'altered')
    .map((workload) => ({ name: 'workloadAltered', message: mismatchText(workload) }));
}

function behind({ answering, coming }: Cast): readonly Finding[] {
  const late = [answering, coming].some((workload) => workload?.behind === true);
  return late ? [{ name: 'applyOutdated', message: 'An edit changed what needs no new workload' }] : [];
}
