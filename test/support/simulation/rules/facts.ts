/** What a plan is made from: nothing that the controller has learned gets lost between two passes. */
import type { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import { endpointKey } from '../deeds.ts';
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import type { Call, Planned } from '../journal.ts';
import type { Rule } from './rule.ts';

export const judgeFacts: Rule = ({ world, life, wrong }) => {
  const bornAt = world.clock.now();
  let observedAt = 0;
  let planned = false;
  let hasHardware = false;
  let stopped: ReadonlySet<string> = new Set();
  let ended: Call[] = [];
  let models = new Map<string, ReadonlySet<SlotName>>();
  let draining = new Map<WorkloadId, number>();
  const cancelled = new Map<string, number>();

  function judgeDraining({ observed, now }: Planned): void {
    if (observed.runtime.kind === 'unreachable') return;
    const present = new Set(observed.runtime.facts.workloads.map(({ id }) => id));
    for (const [id, since] of draining) {
      const known = observed.histories.get(id)?.drainingSince;
      if (present.has(id) && known !== since && !hasRestarted(id))
        wrong(`The drain of "${id}" began ${now - since} ms ago, and is now said to begin at ${known}`);
    }
  }
  /** What no longer has to go does not drain any more. */
  function judgeKept({ observed }: Planned): void {
    if (observed.runtime.kind === 'unreachable' || !planned) return;
    for (const { id } of observed.runtime.facts.workloads) {
      const since = observed.histories.get(id)?.drainingSince;
      if (since !== undefined && !draining.has(id) && !observed.running.has(`stop:${id}`) && !stopped.has(id))
        wrong(`"${id}" does not drain, and is said to drain since ${since}`);
    }
  }
  /** What a workload was started with, and which requests there are, as the world has it. */
  function judgeTruth({ observed }: Planned): void {
    for (const { id, container, phase } of world.runtime.list()) {
      const origin = observed.histories.get(id)?.origin;
      // What is left of a Deployment that was removed does not say what it ran.
      if (origin === undefined || phase === 'stopping' || world.deeds.altered.has(id)) continue;
      if (container.argv?.[2]?.endsWith(origin.model.id) !== true)
        wrong(`"${id}" is taken for a workload with model "${origin.model.id}", which it has not`);
    }
    if (world.cluster === undefined && !isSameValue([...observed.demand], [...life.traffic.read().demand]))
      wrong('A plan does not know which requests wait');
  }
  function hasRestarted(id: WorkloadId): boolean {
    return (world.deeds.exits.get(id)?.length ?? 0) > 0;
  }
  function judgeRunning({ observed }: Planned): void {
    for (const { key, endedAt } of ended) {
      if ((endedAt ?? 0) > observedAt && !observed.running.has(key))
        wrong(`"${key}" ended during the observation, and the plan does not know of it`);
    }
    ended = [];
  }
  /** While the store does not answer, what it said last stays in force. */
  function judgeModels({ observed, desired }: Planned): void {
    const known = new Map<string, ReadonlySet<SlotName>>();
    for (const { name, spec } of desired.slots.values()) {
      const id = spec.model.default;
      if (observed.models.has(id)) known.set(id, new Set([...(known.get(id) ?? []), name]));
      else if (models.get(id)?.has(name) === true) wrong(`What the store said of model "${id}" is forgotten`);
    }
    models = known;
  }
  /** What was known of the machine stays in force while it cannot be read. */
  function judgeHost({ desired }: Planned): void {
    if (hasHardware && desired.hardware === undefined) wrong('What the host said of its hardware is forgotten');
    hasHardware = desired.hardware !== undefined;
  }
  /** What a plan knows of a server is what the last probe showed. */
  function judgeProbes({ observed, now }: Planned): void {
    if (world.cluster !== undefined || observed.runtime.kind === 'unreachable') return;
    for (const fact of observed.runtime.facts.workloads) {
      const { id, endpoints } = fact;
      const [endpoint] = endpoints;
      const probe = observed.histories.get(id)?.probe;
      const busy = [`probe:${id}`, `stop:${id}`, `sleep:${id}`].some((key) => observed.running.has(key));
      // Known without a probe, and then judged by `sleep.ts`.
      if (endpoint === undefined || probe === undefined || busy || probe.status === 'asleep') continue;
      const begunAt = Math.max(world.runtime.begunAt(fact) ?? 0, bornAt);
      // The port of a server that has ended belongs to another one soon, and is still asked for the first one meanwhile.
      const last = world.deeds.probes
        .get(endpointKey(endpoint))
        ?.findLast(({ by, since, slot = fact.slot }) => by === life.journal && since >= begunAt && slot === fact.slot);
      if (last === undefined || last.at >= now) continue;
      if (last.passed !== (probe.status === 'passing'))
        wrong(`The last probe of "${id}" ${last.passed ? 'passed' : 'failed'}, and it is known as "${probe.status}"`);
    }
  }
  function judgeRemoved({ observed, desired }: Planned): void {
    for (const name of [...observed.attempts.keys(), ...observed.lastActive.keys()]) {
      if (!desired.slots.has(name)) wrong(`Slot "${name}" was removed, and something is still known of it`);
    }
  }
  /** A download is cancelled once. */
  function judgeCancelled({ plan, observed, now }: Planned): void {
    if (!observed.leads) return;
    for (const { name, args } of plan.actions) {
      if (name !== 'cancelPull') continue;
      const open = [...life.journal.open].find(({ key }) => key === args.key);
      if (open !== undefined && cancelled.get(args.key) === open.beganAt) wrong(`"${args.key}" is cancelled twice, at ${now}`);
      if (open !== undefined) cancelled.set(args.key, open.beganAt);
    }
  }
  return {
    called({ name }) {
      if (name === 'observe') observedAt = world.clock.now();
    },
    answered(call) {
      if (call.name !== 'read' && call.name !== 'observe') ended.push(call);
    },
    planned(present) {
      const { plan, observed, now } = present;
      judgeDraining(present);
      judgeKept(present);
      judgeRunning(present);
      judgeModels(present);
      judgeHost(present);
      judgeCancelled(present);
      judgeRemoved(present);
      judgeProbes(present);
      judgeTruth(present);
      if (observed.runtime.kind === 'unreachable') return;
      planned = true;
      stopped = new Set([...observed.running.keys()].filter((key) => key.startsWith('stop:')).map((key) => key.slice('stop:'.length)));
      const ids = [...[...plan.decisions.values()].flatMap((decision) => decision.draining), ...plan.orphans.keys()];
      const stopping = [...draining.keys()].filter((id) => observed.running.has(`stop:${id}`) && life.leads());
      draining = new Map([...ids, ...stopping].map((id) => [id, observed.histories.get(id)?.drainingSince ?? now]));
    },
    look() {
      for (const call of life.journal.open) {
        if (cancelled.get(call.key) === call.beganAt && !call.signal.aborted) wrong(`"${call.key}" goes on although it was cancelled`);
      }
    },
  };
};
