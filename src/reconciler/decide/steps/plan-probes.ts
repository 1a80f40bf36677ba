/** Who is probed now, and when next. Pure. */
import type { ModelFacts } from '../../../providers/provider.ts';
import type { Roles } from '../rules/assign-roles.ts';
import type { Finding, ProbeFact } from '../facts/facts.ts';
import type { TimedActions } from './plan-stops.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';

/** How often a workload that answers is asked whether it still does. */
const LIVENESS_MS = 10_000;
/** A pass that comes this much earlier probes too, so that the probes of several slots come to share their passes. */
const LIVENESS_SLACK_MS = 3000;
/** A failed liveness probe is repeated sooner: three in a row then tell within seconds. */
const DOUBT_MS = 2000;
/** One probe action of a warming workload keeps trying for this long, so that its tries need no passes. */
const PATIENCE_MS = 1000;

/** Where the cluster asks each replica itself, ours is only the deeper question. */
const LIVENESS_OF_PODS_MS = 60_000;
const LIVENESS_SLACK_OF_PODS_MS = 20_000;

export function planProbes(view: SlotView, roles: Roles): TimedActions {
  const shown = [roles.serving, roles.starting, roles.unprobed].filter((workload) => workload !== undefined);
  // What this controller takes for faulty may answer the one that leads: it is asked until it is gone.
  const asked = view.leads ? shown : [...shown, ...roles.draining.flatMap(({ workload }) => (workload.alive ? workload : []))];
  const all = asked.map((workload) => planProbe(workload, view, workload === roles.unprobed));
  return {
    actions: all.flatMap(({ actions }) => actions),
    wakes: all.flatMap(({ wakes }) => wakes),
    freshUntil: all.reduce(
      (soonest, { freshUntil }) => Math.min(soonest, freshUntil ?? Number.POSITIVE_INFINITY),
      Number.POSITIVE_INFINITY,
    ),
  };
}

const NOTHING: TimedActions = { actions: [], wakes: [] };

/** The pause between two tries while a workload warms up: a twentieth of its age, so that waiting adds no more than that; 5 ms to 1 s. */
export function warmingPauseMs(ageMs: number): number {
  return Math.min(Math.max(ageMs / 20, 5), 1000);
}

function planProbe(workload: WorkloadView, view: SlotView, once: boolean): TimedActions {
  const { fact, known } = workload;
  const { probe } = known;
  if (fact.phase !== 'running' || fact.endpoints.length === 0 || workload.probeUnderWay) return NOTHING;
  const dueAt = nextProbeAt(probe, known.seenAt, view);
  const slack = probe?.status !== 'passing' ? 0 : isAskedByCluster(probe, view) ? LIVENESS_SLACK_OF_PODS_MS : LIVENESS_SLACK_MS;
  if (dueAt - slack > view.now) return { actions: [], wakes: [dueAt], freshUntil: dueAt - slack };
  const patienceMs = once || probe?.passed === true ? 0 : PATIENCE_MS;
  const origin = known.origin ?? { spec: view.spec, model: modelOf(view) };
  const args = {
    slot: view.slot.name,
    workload: fact.id,
    endpoints: fact.endpoints,
    spec: origin.spec,
    model: origin.model,
    patienceMs,
    since: known.seenAt,
  };
  return { actions: [{ name: 'probe', slot: view.slot.name, because: whyProbe(probe), args }], wakes: [] };
}

function isAskedByCluster({ failingEndpoints }: ProbeFact, { network }: SlotView): boolean {
  return network === 'pods' && failingEndpoints.length === 0;
}

function nextProbeAt(probe: ProbeFact | undefined, seenAt: number, view: SlotView): number {
  if (probe === undefined) return view.now;
  if (!probe.passed) return probe.lastAt + warmingPauseMs(probe.lastAt - seenAt);
  if (probe.status !== 'passing') return probe.lastAt + DOUBT_MS;
  return probe.lastAt + (isAskedByCluster(probe, view) ? LIVENESS_OF_PODS_MS : LIVENESS_MS);
}

function whyProbe(probe: ProbeFact | undefined): Finding {
  if (probe?.passed === true) return { reason: 'ProbeDue', message: 'It is time to ask whether it still answers' };
  return { reason: 'ProbeNotPassed', message: 'It runs, and has not answered yet' };
}

/** Of a workload that was found running while its model is gone from the store, only the name is known. */
function modelOf({ model, spec }: SlotView): ModelFacts {
  return model?.kind === 'present' ? model.facts : { id: spec.model.default, hostPath: '', sizeBytes: 0 };
}
