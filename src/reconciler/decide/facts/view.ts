/** A slot with everything that rules may look at, from its facts and the time: sums and comparisons only. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { RuntimeTraits } from '../../ports.ts';
import { backendChoice, backendMissing, devicesMissing } from './choose-backend.ts';
import { lookUpModels } from './companions.ts';
import { knownOptions, needsImage } from './gather.ts';
import { largestDeviceBytes, withDevices } from './memory-pools.ts';
import type { MeasuredMemory } from './measured-memory.ts';
import type { Comparison } from './drift.ts';
import type { Attempt, Attempts, Repairs } from './facts.ts';
import type { SlotFacts, WorkloadFacts } from './slot-facts.ts';
import { keptTemplate } from './drift.ts';
import type { Template } from './workload.ts';

export interface WorkloadView extends WorkloadFacts {
  /** Created or running, and not being stopped. */
  readonly alive: boolean;
  /** Comparison with the desired workload. Without a template every workload counts as current. */
  readonly standing: 'current' | 'outdated' | 'altered';
  readonly drift: readonly string[];
  /** It can be updated in place, so that an altered one remains the current one. */
  readonly updatable: boolean;
  /** An edit asks for something that is updated in place. */
  readonly behind: boolean;
}

/** `model`: the slot's own if all of its models are present, otherwise the first one that is not. */
export interface SlotView extends SlotFacts {
  readonly spec: SlotSpec;
  readonly now: number;
  readonly network: RuntimeTraits['network'];
  /** Whether this controller executes the plan. */
  readonly leads: boolean;
  readonly providerKnown: boolean;
  /** Why the backend cannot be used on this machine. */
  readonly backendMissing: Finding | undefined;
  /** Why it cannot have the devices that it names. */
  readonly devicesMissing: Finding | undefined;
  /** Why it computes with another backend than the default one. */
  readonly backendChoice: string | undefined;
  readonly imagesUsed: boolean;
  readonly template: Template | undefined;
  /** Why the provider failed to make a template; undefined if it did not fail. */
  readonly templateProblem: string | undefined;
  /** Total memory of the largest discrete device that the slot may use; undefined without one, or if unknown. */
  readonly largestDeviceBytes: number | undefined;
  /** As measured for this revision. */
  readonly measured: MeasuredMemory | undefined;
  readonly workloads: readonly WorkloadView[];
  readonly inFlight: number;
  /** Failures of this generation, oldest first. */
  readonly failures: readonly Attempt[];
  /** Repairs in this generation. */
  readonly repairs: Repairs | undefined;
  /** Starts of this generation. */
  readonly startLog: NonNullable<Attempts['startLog']>;
}

/** Throws where the provider of the slot does. */
export function viewSlot(facts: SlotFacts, now: number): SlotView {
  const { circumstances, slot, judged, image, attempts, options } = facts;
  const { traits, providers, machine, leads } = circumstances;
  const { spec } = slot;
  const imagesUsed = needsImage(traits, providers[spec.provider]);
  const imageUsable = image !== undefined || !imagesUsed;
  const { model, companions } = lookUpModels(spec, facts.model, facts.companions);
  const present =
    model?.kind === 'present' && imageUsable
      ? circumstances.templateOf(slot, model.facts, image, { options: knownOptions(options), companions })
      : undefined;
  const template = keptTemplate(
    present,
    slot,
    facts.workloads.map(({ fact }) => fact),
  );
  const workloads = facts.workloads.map((workload) => viewWorkload(workload, template, facts));
  // Attempts of earlier generations do not count.
  const current = attempts?.generation === slot.generation ? attempts : undefined;
  return {
    ...facts,
    model,
    spec,
    now,
    network: traits.network,
    leads,
    backendMissing: backendMissing(spec, judged),
    devicesMissing: devicesMissing(spec, machine, traits.network !== 'pods'),
    backendChoice: backendChoice(spec, judged),
    providerKnown: providers[spec.provider] !== undefined,
    imagesUsed,
    template,
    templateProblem: undefined,
    largestDeviceBytes: largestDeviceBytes(withDevices(machine, spec.resources.devices), spec.backend),
    measured: facts.measured?.revision === template?.revision ? facts.measured : undefined,
    workloads,
    inFlight: workloads.reduce((sum, workload) => sum + workload.inFlight, 0),
    failures: current?.failures ?? [],
    repairs: current?.repairs,
    startLog: current?.startLog ?? [],
  };
}

/** The view of a slot whose provider fails: its workloads cannot be compared, and stay as they are. */
export function viewWithoutTemplate(facts: SlotFacts, now: number, problem: string): SlotView {
  const circumstances = { ...facts.circumstances, templateOf: () => undefined };
  return { ...viewSlot({ ...facts, circumstances, judged: undefined }, now), templateProblem: problem };
}

function viewWorkload(workload: WorkloadFacts, template: Template | undefined, { circumstances, slot, imageId }: SlotFacts): WorkloadView {
  const { fact } = workload;
  const same = template === undefined || template.revision === fact.revision;
  const isCompared = template !== undefined && same && fact.phase !== 'exited';
  const { drift, outdated, updatable } = isCompared ? circumstances.compare(slot, template, imageId, fact) : NO_DIFFERENCE;
  const standing = !same ? 'outdated' : drift.length > 0 ? 'altered' : 'current';
  return { ...workload, alive: isAlive(workload), standing, drift, updatable, behind: outdated };
}

/** The view of a workload whose slot is no longer desired: there is nothing to compare it with. */
export function viewOrphan(workload: WorkloadFacts): WorkloadView {
  return { ...workload, alive: isAlive(workload), standing: 'current', drift: [], updatable: false, behind: false };
}

const isAlive = ({ fact, stopUnderWay }: WorkloadFacts): boolean => (fact.phase === 'created' || fact.phase === 'running') && !stopUnderWay;

const NO_DIFFERENCE: Comparison = { drift: [], outdated: false, updatable: false };
