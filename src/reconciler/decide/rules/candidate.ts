/** A slot before memory is shared: whether it should run, what prevents that, and its memory claim. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { Machine } from '../../../schema/status/hardware.ts';
import {
  addBytes,
  HOST,
  mostBytes,
  NO_BYTES,
  poolsOfBackend,
  roomOnDevices,
  sumBytes,
  withDevices,
  type PoolBytes,
  type PoolId,
  type MemoryVerdict,
} from '../facts/memory-pools.ts';
import type { Gathered } from '../facts/gather.ts';
import { slotFactsOf, type SlotFacts } from '../facts/slot-facts.ts';
import { viewSlot, viewWithoutTemplate, type SlotView, type WorkloadView } from '../facts/view.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { Template } from '../facts/workload.ts';
import type { SlotMemory } from './allocator.ts';
import { devicesGiven, placementVariables, splitOf } from '../facts/drift.ts';
import { findGates, type Gate } from './gates.ts';
import { chooseSplit, turnOf, placeMemory, type PlacementQuestion } from './memory-turns.ts';
import { correctDemand } from '../facts/measured-memory.ts';
import type { MemoryClaim } from './share-memory.ts';
import { isAsleep } from './assign-roles.ts';
import { loadsFor, whyAhead, whyAsleep, whyNotWanted } from './wanted.ts';

export interface Candidate {
  /** What it was made of, beside the time. */
  readonly facts: SlotFacts;
  readonly view: SlotView;
  readonly machine: Machine | undefined;
  readonly notWanted: Finding | undefined;
  readonly gates: readonly Gate[];
  /** Why it rests unless there is memory that nobody else needs; undefined where it is not loaded ahead of requests. */
  readonly ahead: Finding | undefined;
  /** Undefined where the slot needs no memory now. */
  readonly claim: MemoryClaim | undefined;
  readonly needs: PlacementQuestion;
  /** What its workloads hold. */
  readonly held: PoolBytes;
  /** What its sleeping server would hold in addition if it were woken. */
  readonly toWake: PoolBytes;
}

/** A provider that throws breaks its own slots only. */
export function consider(slot: DesiredSlot, gathered: Gathered): Candidate {
  const facts = slotFactsOf(slot, gathered);
  return { ...makeCandidate(viewOrHoldUp(facts, gathered.now), facts.circumstances.machine), facts };
}

function viewOrHoldUp(facts: SlotFacts, now: number): SlotView {
  try {
    return viewSlot(facts, now);
  } catch (error) {
    return viewWithoutTemplate(facts, now, String(error));
  }
}

function makeCandidate(view: SlotView, machine: Machine | undefined): Omit<Candidate, 'facts'> {
  const { spec, template, applying } = view;
  const notWanted = whyNotWanted(view);
  const gates = findGates(view);
  const needs = needsOf(view, machine);
  const { demand } = needs;
  const estimate = estimateOf(view, needs);
  const awake = view.workloads.map((workload) => {
    const given = devicesGiven(workload.fact.container.env, machine, spec.backend);
    const counted = heldBytes(workload, needs, given, roomOnDevices(machine));
    // Only a server of this revision was measured.
    const isMeasured =
      estimate !== undefined && demand !== estimate && workload.fact.revision === template?.revision && workload.fact.phase !== 'exited';
    return isMeasured ? mostBytes(counted, placeAgain(needs, [counted])) : counted;
  });
  const held = view.workloads.map((workload, index) =>
    isAsleep(workload) && workload.sleepUnderWay !== 'wake' ? asleepMemory(awake[index] ?? NO_BYTES, template) : (awake[index] ?? NO_BYTES),
  );
  const incumbent = view.workloads.some(({ alive }) => alive) || applying !== undefined;
  const willRun = notWanted === undefined && (incumbent || gates.every(({ kind }) => kind === 'waiting'));
  const claims = willRun && (template !== undefined || held.length > 0);
  const rests = notWanted === undefined && whyAsleep(view) !== undefined && template?.asleepBytes !== undefined;
  const needed = rests ? awake.map((bytes) => asleepMemory(bytes, template)) : awake;
  const present = [...needed, ...(applying === undefined ? [] : [applying.args.origin.memory])];
  const willHold = present.length === 0 ? undefined : [...present, ...(rests ? [] : [placeAgain(needs, present)])].reduce(mostBytes);
  return {
    view,
    machine,
    notWanted,
    gates,
    ahead: whyAhead(view),
    needs,
    held: held.length === 0 ? NO_BYTES : sumBytes(held),
    toWake: held.every((bytes, index) => bytes === awake[index]) ? NO_BYTES : differenceOf(sumBytes(awake), sumBytes(held)),
    claim: claims ? makeClaim(view, { needs, held: willHold, incumbent }) : undefined,
  };
}

/** What a server holds while it sleeps, if it holds `awake` otherwise. */
function asleepMemory(awake: PoolBytes, template: Template | undefined): PoolBytes {
  if (template?.asleepBytes === undefined) return awake;
  return { [HOST]: Math.max(awake[HOST] ?? 0, template.asleepBytes) };
}

const differenceOf = (all: PoolBytes, part: PoolBytes): PoolBytes =>
  addBytes(all, Object.fromEntries(Object.entries(part).map(([id, bytes]) => [id, -bytes])));

const NOTHING = { hostBytes: 0, deviceBytes: 0 };

/** A server keeps the split it was started with. What replaces one is divided as on an idle machine. */
function needsOf(view: SlotView, machine: Machine | undefined): PlacementQuestion {
  const { spec, template, applying, workloads } = view;
  const { gpus, devices } = spec.resources;
  const whole = { pools: poolsOfBackend(withDevices(machine, devices), spec.backend), gpus };
  if (template?.memory === undefined) return { ...whole, demand: NOTHING };
  const present = [
    ...workloads.map(({ fact }) => ({ ...fact, env: fact.container.env })),
    ...(applying === undefined ? [] : [applying.args.workload]),
  ];
  const current = present.find(({ revision }) => revision === template.revision);
  const split = current && splitOf(current.env, template);
  const demand = correctDemand(split?.demand ?? template.memory, spec, view.measured);
  if (current?.env !== undefined) return { ...whole, demand, split };
  const open = { ...whole, demand, splits: template.splits ?? [] };
  return present.length === 0 ? open : chooseSplit(open, roomOnDevices(machine));
}

const estimateOf = ({ template }: SlotView, { split }: PlacementQuestion) => split?.demand ?? template?.memory;

function makeClaim(view: SlotView, { needs, held, incumbent }: Pick<MemoryClaim, 'needs' | 'held' | 'incumbent'>): MemoryClaim {
  const { spec, inFlight, waiting, waitingSince, lastActiveAt = 0, workloads, now } = view;
  const request = { busy: inFlight > 0 || waiting > 0, incumbent, waitingSince, lastActiveAt };
  const estimate = estimateOf(view, needs);
  const { probe, seenAt: startedAt } = workloads.find(({ alive, known }) => alive && known.probe?.passed === true)?.known ?? {};
  return {
    ...request,
    slot: view.slot.name,
    priority: spec.priority,
    turn: turnOf({
      ...request,
      onDemand: spec.load === 'on-demand',
      isAhead: whyAhead(view) !== undefined,
      passingSince: probe?.since,
      startedAt,
      now,
    }),
    caller: loadsFor(view),
    reloadBytes: view.model?.kind === 'present' ? (view.model.facts.sizeBytes ?? 0) : 0,
    estimatedBytes: estimate === undefined || needs.demand === estimate ? undefined : estimate.hostBytes + estimate.deviceBytes,
    held,
    needs,
  };
}

/** What runs stays where it is, divided over devices as it is, and so does what replaces it. */
function placeAgain(needs: PlacementQuestion, present: readonly PoolBytes[]): PoolBytes {
  const held = present.reduce(mostBytes, NO_BYTES);
  return placeMemory(needs, (id) => held[id] ?? 0);
}

/** The memory of a slot, once it is known what it gets. */
export function slotMemory({ view, machine, claim, needs, held, toWake }: Candidate, verdict: MemoryVerdict | undefined): SlotMemory {
  const alone = chooseSplit(needs, roomOnDevices(machine));
  const needed =
    claim?.held === undefined ? (verdict?.placement ?? placeMemory(alone, roomOnDevices(machine))) : placeAgain(needs, [claim.held]);
  const { split } = claim === undefined || verdict === undefined ? alone : verdict;
  const variables = { ...placementVariables(needed, machine, view.spec, view.template?.env ?? {}), ...split?.env };
  return { needed, variables, claimed: claim === undefined ? NO_BYTES : (verdict?.placement ?? NO_BYTES), held, toWake };
}

/** A server that was found running is taken to be where it would be placed on an idle machine. */
function heldBytes(
  { fact, known }: WorkloadView,
  needs: PlacementQuestion,
  given: readonly PoolId[] | undefined,
  room: (id: PoolId) => number,
): PoolBytes {
  if (fact.phase === 'exited') return NO_BYTES;
  if (known.origin !== undefined) return known.origin.memory;
  const own = given ?? needs.pools.own;
  return placeMemory({ ...needs, pools: { ...needs.pools, own }, gpus: given?.length ?? needs.gpus }, room);
}
