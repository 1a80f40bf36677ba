/** Shows what an edit would do: observes and plans as a pass does, without recording or carrying out anything. */
import type { SlotName } from '../schema/words/names.ts';
import { formatProblem } from '../schema/slot/spec-problem.ts';
import { judgeText } from '../evaluation/decide/rollout-state.ts';
import { defined } from '../schema/pod/kube-fields.ts';
import { chooseText } from '../schema/slot/paused-text.ts';
import { parseSlot, type SlotDocument } from '../schema/slot/slot-spec.ts';
import { explain, findFailing, listChanges, type Change, type FailingSlot } from './decide/outcome/explain.ts';
import type { Observed } from './decide/facts/facts.ts';
import { classifyEdit } from './decide/facts/slot-edit.ts';
import { plan } from './decide/plan.ts';
import { desire, templatingOf, type DesireDeps } from './remember/desire.ts';
import { observe, readDesired, type Observation, type Senses } from './observe.ts';
import type { Clock, DesiredSlot, DesiredState } from './ports.ts';
import type { HostFacts } from '../schema/status/hardware.ts';

interface PreviewInput {
  readonly senses: Senses;
  readonly deps: DesireDeps;
  readonly clock: Clock;
  readonly overlay: ReadonlyMap<SlotName, SlotDocument | undefined>;
  readonly asked: ReadonlySet<SlotName>;
  /** The last state read, for when the source cannot be read now. */
  readonly known: DesiredState | undefined;
  /** The host as it was read last. */
  readonly host: HostFacts;
  /** The facts of a plan, from this observation and the loop's tracker. */
  readonly observedOf: (seen: Observation, slots: DesiredState['slots'], now: number) => Observed;
}

export interface Preview {
  readonly text: string;
  readonly changes: readonly Change[];
  /** Slots of the edit that it leaves unable to load, and others that it makes so. Without an edit, all such slots. */
  readonly failing: readonly FailingSlot[];
}

export async function preview(input: PreviewInput): Promise<Preview> {
  const { senses, deps, clock, overlay, asked } = input;
  const { signal } = new AbortController();
  const read = await readDesired(senses, signal);
  const present = read.ok ? read.value : (input.known ?? { slots: new Map(), refused: new Map() });
  const { state, refusals, wakened } = applyOverlay(present, overlay);
  const seen = await observe(senses, state.slots, input.host, signal);
  const now = clock.now();
  const observed = input.observedOf(seen, state.slots, now);
  const lastActive = new Map(observed.lastActive);
  for (const name of wakened) if (state.slots.get(name)?.spec.load === 'always') lastActive.set(name, now);
  const demand = new Map(observed.demand);
  for (const name of asked) demand.set(name, { waiting: 1, waitingSince: now, lastAskedAt: now });
  const next = plan(desire(deps, state, seen.host, templatingOf(deps)), { ...observed, lastActive, demand }, now);
  const isConcerned = ({ slot }: FailingSlot): boolean => {
    const before = observed.published.get(slot);
    return overlay.size === 0 || overlay.has(slot) || before === undefined || findFailing({ name: slot, ...before }) === undefined;
  };
  const stuck = [...next.decisions.values()].flatMap((decision) => findFailing(decision) ?? []).filter(isConcerned);
  const failing = [...refusals, ...stuck];
  const lines = failing.map(({ slot, reason, message }) => `Slot "${slot}" cannot be loaded: ${message} [${reason}]`);
  return { text: [...lines, explain(next, now)].join('\n'), changes: listChanges(next), failing };
}

function applyOverlay(present: DesiredState, overlay: ReadonlyMap<SlotName, SlotDocument | undefined>) {
  const slots = new Map<SlotName, DesiredSlot>(present.slots);
  const refusals: FailingSlot[] = [];
  /** Slots that the edit would load again if they were idle. */
  const wakened: SlotName[] = [];
  for (const [name, document] of overlay) {
    if (document === undefined) {
      slots.delete(name);
      continue;
    }
    const parsed = parseSlot(name, document);
    if (!parsed.ok) {
      const message = parsed.problems.map((problem) => formatProblem(problem)).join('; ');
      refusals.push({ slot: name, reason: 'SpecInvalid', message });
      continue;
    }
    const before = present.slots.get(name);
    const { inForce, paused } = chooseText(before && { spec: before.spec, document: {} }, { spec: parsed.spec, document: {} });
    if (paused !== undefined) {
      slots.set(name, { name, uid: before?.uid, generation: before?.generation ?? 1, spec: inForce.spec, problems: [], paused });
      continue;
    }
    const texts = { inForce: before && { spec: before.spec, document: {} }, rollout: before?.rollout };
    const { rollout } = judgeText(texts, { spec: parsed.spec, document: {} }, before?.rollout?.checks);
    const next = { uid: before?.uid, spec: parsed.spec, generation: (before?.generation ?? 0) + 1, ...defined({ rollout }) };
    const edit = classifyEdit(before, next);
    if (edit !== 'scaled') wakened.push(name);
    // Its failures still count.
    const isScaled = before !== undefined && (edit === 'scaled' || edit === 'scaled-up');
    slots.set(name, { name, ...next, ...(isScaled ? { generation: before.generation } : {}), problems: [] });
  }
  return { state: { ...present, slots }, refusals, wakened };
}
