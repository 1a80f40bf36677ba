/** The start of a workload, what is pulled for slots, and which pulls are cancelled. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import { isPull, keyOfAction, type Action, type Pull } from '../facts/actions.ts';
import type { SlotView } from '../facts/view.ts';
import { workloadOf } from '../facts/workload.ts';
import { portFor, type Allocation, type SlotMemory } from '../rules/allocator.ts';
import type { Gate } from '../rules/gates.ts';
import type { Observed, RunningAction } from '../facts/facts.ts';
import type { Progress } from '../../ports.ts';

/** Either the action, or why there is none after all. */
export function planStart(
  view: SlotView,
  allocation: Allocation,
  { needed, variables, warm }: Pick<SlotMemory, 'needed' | 'variables'> & { readonly warm: Finding | undefined },
): { readonly action?: Action; readonly gate?: Gate } {
  const { template, slot, model, spec } = view;
  if (template === undefined || model?.kind !== 'present') return {};
  const port = template.cluster === undefined ? portFor(allocation, view.failures.at(-1)?.port) : template.containerPort;
  if (port === undefined) {
    const message = 'Every port of "SVC_PORT_RANGE" is taken; widen it';
    return { gate: { kind: 'waiting', reason: 'PortRangeUsedUp', message } };
  }
  const names = new Set(view.workloads.map(({ fact }) => fact.name));
  const placed = { ...template, env: { ...template.env, ...variables } };
  const workload = workloadOf(slot, Object.keys(variables).length === 0 ? template : placed, port, names);
  const origin = { spec, model: model.facts, memory: needed };
  const because: Finding =
    names.size === 0
      ? (warm ?? { reason: 'WorkloadNotPresent', message: 'No workload is running for this slot' })
      : { reason: 'RevisionOutdated', message: `Revision "${template.revision}" starts beside the one that serves` };
  return { action: { name: 'apply', slot: slot.name, because, args: { workload, origin } } };
}

interface Pulls {
  readonly actions: readonly Action[];
  /** A pull for the slot is running, or starts now. */
  readonly pulling: boolean;
  /** Keys of all pulls that the slot needs: running, starting or delayed. */
  readonly waitsFor: readonly string[];
  readonly progress: Progress | undefined;
}

/** Pulls start only where nothing else prevents the slot from starting. */
export function planPulls(view: SlotView, gates: readonly Gate[]): Pulls {
  const needed = gates.flatMap((gate) => pullFor(gate, view) ?? []);
  const due = gates.every(({ kind }) => kind === 'pulling');
  return {
    actions: due ? needed.filter(({ running }) => running === undefined).map(({ pull }) => pull) : [],
    pulling: needed.some(({ running }) => due || running !== undefined),
    waitsFor: needed.map(({ pull }) => keyOfAction(pull)),
    progress: needed.map(({ running }) => running?.progress).find((progress) => progress !== undefined),
  };
}

export const NO_PULLS: Pulls = { actions: [], pulling: false, waitsFor: [], progress: undefined };

/** Cancels running pulls that no slot waits for. */
export function cancelPulls({ running }: Observed, wanted: ReadonlySet<string>): readonly Action[] {
  return [...running].flatMap(([key, { action, cancelled }]): Action[] => {
    if (!isPull(action) || cancelled === true || wanted.has(key)) return [];
    const because: Finding = { reason: 'PullNotWanted', message: 'No slot needs it any more' };
    return [{ name: 'cancelPull', slot: action.slot, because, args: { key } }];
  });
}

/** Slots that need the same image or model share its pull. */
export function sharePulls(actions: readonly Action[]): readonly Action[] {
  const seen = new Set<string>();
  return actions.filter((action) => {
    if (!isPull(action)) return true;
    const key = keyOfAction(action);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function pullFor(gate: Gate, { image, spec, slot: { name: slot }, imagePull, modelPull, ...view }: SlotView): Needed | undefined {
  if (gate.kind !== 'pulling') return undefined;
  const model = (view.model?.kind === 'pullable' ? view.model.companion : undefined) ?? spec.model.default;
  if (gate.what === 'model') return { pull: { name: 'pullModel', slot, because: gate, args: { model } }, running: modelPull };
  return image && { pull: { name: 'pullImage', slot, because: gate, args: { image } }, running: imagePull };
}

type Needed = Readonly<{ pull: Pull; running: RunningAction | undefined }>;
