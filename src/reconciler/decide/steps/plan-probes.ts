/** Which workloads are probed now, and when the next probes are due. Pure. */
import type { Endpoint } from '../../../providers/provider.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import { isAmong, isSound, type ProbeFact } from '../facts/workload-history.ts';
import { promptServer, savedServer } from '../facts/prompt-server.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Draining, Roles } from '../rules/assign-roles.ts';
import { askedServer, drainsWithoutLimit, joinTimed, NOTHING_DUE, type TimedActions } from './plan-stops.ts';

/** The interval of the probes of a workload that passes. */
const LIVENESS_MS = 10_000;
/** A pass up to this much earlier probes too: at half the interval, the probes of all slots soon share one pass. */
const LIVENESS_SLACK_MS = LIVENESS_MS / 2;
/** A failed probe is repeated sooner, so that three in a row take only seconds. */
const DOUBT_MS = 2000;
/** One probe action of a warming workload keeps trying for this long, so that not every attempt needs a pass. */
const PATIENCE_MS = 1000;

/** In a cluster, kubelets probe each replica, and our probe only looks deeper. */
const LIVENESS_OF_PODS_MS = 60_000;
const LIVENESS_SLACK_OF_PODS_MS = 20_000;

export function planProbes(view: SlotView, roles: Roles): TimedActions {
  const kept = [roles.serving, roles.starting, roles.unprobed, roles.sleeping, roles.held].filter((workload) => workload !== undefined);
  const draining = roles.draining.flatMap((each) => (each.workload.alive && isProbed(each, view) ? each.workload : []));
  return joinTimed([...kept, ...draining].map((workload) => planProbe(workload, view, workload === roles.unprobed)));
}

/**
 * What a follower takes to be faulty may answer the leader, so it is probed until it is gone. The leader waits for
 * requests only while their server is alive: a frozen one would keep its memory for ever.
 */
function isProbed({ workload, because }: Draining, { leads }: SlotView): boolean {
  return !leads || (drainsWithoutLimit(because) && workload.inFlight > 0);
}

/** Pause between attempts while a workload warms up: a twentieth of its age, 5 ms to 1 s. */
export const warmingPauseMs = (ageMs: number): number => Math.min(Math.max(ageMs / 20, 5), 1000);

function planProbe(workload: WorkloadView, view: SlotView, once: boolean): TimedActions {
  const { fact, known } = workload;
  const { probe } = known;
  if (fact.phase !== 'running' || fact.endpoints.length === 0 || workload.sleepUnderWay !== undefined) return NOTHING_DUE;
  const isRepeated = probe !== undefined && isSound(probe.status);
  const wakes = isRepeated ? [afterInterval(workload.probeSince ?? view.now, intervalMs(probe, view), view.now)] : [];
  if (workload.probeSince !== undefined) return { actions: [], wakes };
  const dueAt = nextProbeAt(workload, view);
  const slack = !isRepeated ? 0 : isProbedByCluster(probe, view) ? LIVENESS_SLACK_OF_PODS_MS : LIVENESS_SLACK_MS;
  if (dueAt - slack > view.now) return { actions: [], wakes: [dueAt], validUntil: dueAt - slack };
  const patienceMs = once || probe?.passed === true ? 0 : PATIENCE_MS;
  // Only into a server that this controller has started: another one may have computed prompts since.
  const isFresh = known.origin !== undefined && probe?.passed !== true && workload.standing === 'current';
  const restores = isFresh && view.spec.lifecycle.keepPrompts ? promptServer(fact) : undefined;
  const saves = probe?.passed === true && workload.inFlight === 0 ? savedServer(fact, view) : undefined;
  const args = {
    ...askedServer(workload, view),
    patienceMs,
    since: known.seenAt,
    passedEndpoints: probe?.passedEndpoints ?? [],
    passed: probe?.passed === true,
    asksModel: asksModel(workload, view),
    ...(restores === undefined ? {} : { restores }),
    ...(saves === undefined ? {} : { saves }),
  };
  return { actions: [{ name: 'probe', slot: view.slot.name, because: whyProbe(probe), args }], wakes };
}

/**
 * The leader replaces a server whose model fails, so that a follower only has to know whether it reaches the pod
 * itself. Where one of several pods fails, nobody replaces it, and each replica of the gateway finds out which one.
 */
function asksModel({ fact, known: { probe } }: WorkloadView, { leads, network }: SlotView): boolean {
  return leads || network !== 'pods' || fact.endpoints.length > 1 || probe?.status !== 'passing';
}

function isProbedByCluster({ failingEndpoints }: ProbeFact, { network }: SlotView): boolean {
  return network === 'pods' && failingEndpoints.length === 0;
}

function nextProbeAt({ fact, known: { probe, seenAt } }: WorkloadView, view: SlotView): number {
  if (probe === undefined || isNew(fact.endpoints, probe)) return view.now;
  if (!probe.passed) return probe.lastAt + warmingPauseMs(probe.lastAt - seenAt);
  if (!isSound(probe.status)) return probe.lastAt + DOUBT_MS;
  return probe.lastAt + intervalMs(probe, view);
}

/**
 * A probe that repeats its result is followed by no pass, so that of the next one is planned before it has ended; if it
 * lasts longer, after another interval.
 */
function afterInterval(since: number, everyMs: number, now: number): number {
  return since + (Math.floor((now - since) / everyMs) + 1) * everyMs;
}

const intervalMs = (probe: ProbeFact, view: SlotView): number => (isProbedByCluster(probe, view) ? LIVENESS_OF_PODS_MS : LIVENESS_MS);

/** A replica that has not been asked yet: it gets no requests until it has shown that it is ready. */
function isNew(endpoints: readonly Endpoint[], { passedEndpoints, failingEndpoints }: ProbeFact): boolean {
  return endpoints.some((endpoint) => !isAmong(endpoint, passedEndpoints) && !isAmong(endpoint, failingEndpoints));
}

function whyProbe(probe: ProbeFact | undefined): Finding {
  if (probe?.passed === true) return { reason: 'ProbeDue', message: 'A liveness probe is due' };
  return { reason: 'ProbeNotPassed', message: 'The server runs and has not answered yet' };
}
