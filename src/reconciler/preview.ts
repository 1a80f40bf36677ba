/** What an edit would do: the same look and the same plan as a pass, with nothing remembered and nothing carried out. */
import type { ProviderRegistry } from '../providers/provider.ts';
import type { SlotName } from '../schema/names.ts';
import { formatProblem } from '../schema/spec-problem.ts';
import { parseSlot, type SlotDocument } from '../schema/slot-spec.ts';
import { explain, listChanges, type Change } from './decide/outcome/explain.ts';
import type { Desired, Observed } from './decide/facts/facts.ts';
import { plan } from './decide/plan.ts';
import { createTemplates } from './decide/facts/workload.ts';
import { observe, readDesired, type Observation, type Senses } from './observe.ts';
import type { Clock, DesiredSlot, DesiredState, ModelStore, Traffic } from './ports.ts';

interface PreviewInput {
  readonly senses: Senses;
  readonly clock: Clock;
  readonly providers: ProviderRegistry;
  readonly models: ModelStore;
  readonly traffic: Traffic;
  readonly overlay: ReadonlyMap<SlotName, SlotDocument | undefined>;
  /** The last state read, for when the source cannot be read now. */
  readonly known: DesiredState | undefined;
  readonly desire: (state: DesiredState, memoryTotalBytes: number | undefined, templateOf: Desired['templateOf']) => Desired;
  /** What the loop knows beyond what is seen. */
  readonly learned: (
    now: number,
  ) => Pick<Observed, 'leads' | 'histories' | 'attempts' | 'running' | 'lastActive' | 'takenPorts' | 'previous'>;
}

export async function preview(input: PreviewInput): Promise<{ readonly text: string; readonly changes: readonly Change[] }> {
  const { senses, clock, overlay } = input;
  const { signal } = new AbortController();
  const read = await readDesired(senses, signal);
  const present = read.ok ? read.value : (input.known ?? { slots: new Map(), refused: new Map() });
  const { state, refusals } = layOver(present, overlay);
  const seen = await observe(senses, state.slots, signal);
  const now = clock.now();
  const templateOf = createTemplates(input.providers, senses.runtime.traits, input.models.root);
  const next = plan(input.desire(state, seen.host.memoryTotalBytes, templateOf), observedOf(input, seen, state, now), now);
  return { text: [...refusals, explain(next, now)].join('\n'), changes: listChanges(next) };
}

function layOver(
  present: DesiredState,
  overlay: ReadonlyMap<SlotName, SlotDocument | undefined>,
): { readonly state: DesiredState; readonly refusals: readonly string[] } {
  const slots = new Map<SlotName, DesiredSlot>(present.slots);
  const refusals: string[] = [];
  for (const [name, document] of overlay) {
    if (document === undefined) {
      slots.delete(name);
      continue;
    }
    const parsed = parseSlot(name, document);
    const generation = (present.slots.get(name)?.generation ?? 0) + 1;
    if (parsed.ok) slots.set(name, { name, spec: parsed.spec, generation, problems: [] });
    else refusals.push(`Slot "${name}" would be refused: ${parsed.problems.map((problem) => formatProblem(problem)).join('; ')}`);
  }
  return { state: { ...present, slots }, refusals };
}

function observedOf(input: PreviewInput, seen: Observation, state: DesiredState, now: number): Observed {
  const traffic = input.traffic.read();
  const learned = input.learned(now);
  const lastActive = new Map(learned.lastActive);
  for (const name of input.overlay.keys()) if (state.slots.get(name)?.spec.load === 'always') lastActive.set(name, now);
  return {
    ...learned,
    lastActive,
    traits: input.senses.runtime.traits,
    runtime: seen.runtime.ok
      ? { kind: 'reachable', facts: seen.runtime.value }
      : { kind: 'unreachable', message: seen.runtime.failure.message },
    models: seen.models ?? new Map(),
    host: seen.host,
    activity: traffic.workloads,
    demand: traffic.demand,
  };
}
