/** What a SlotSpec resource asks for, or everything that is wrong with it. A write of its status makes a new object that asks for the same. Pure. */
import type { KubeObject } from '../../client/ports.ts';
import type { DesiredSlot } from '../../../reconciler/ports.ts';
import type { SlotName } from '../../../schema/names.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import { parseSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot-spec.ts';

/** What is kept of a resource from one reading to the next. */
export interface SlotReading {
  readonly uid: string | undefined;
  readonly generation: number;
  readonly document: unknown;
  /** The last good spec of this very object. */
  readonly good: SlotSpec | undefined;
  readonly outcome:
    | { readonly kind: 'desired'; readonly slot: DesiredSlot }
    /** Bad, and no good one came before it. */
    | { readonly kind: 'refused'; readonly problems: readonly SpecProblem[] };
}

/** More are counted, not listed: no one reads them. */
const MOST_PROBLEMS = 50;

/** Whether a resource asks for something else than the one before it: it is another one, its spec was edited, or it shall go. */
export function asksAnew(before: KubeObject | undefined, { metadata }: KubeObject): boolean {
  const { uid, generation, deletionTimestamp } = before?.metadata ?? {};
  // The server counts each change of the spec, and no other.
  const same = generation !== undefined && generation === metadata.generation;
  return !same || uid !== metadata.uid || deletionTimestamp !== metadata.deletionTimestamp;
}

/** Answers `before` itself where the resource asks for nothing new. */
export function readSlotResource(name: SlotName, object: KubeObject, before: SlotReading | undefined): SlotReading {
  const { uid, generation = 1 } = object.metadata;
  const known = before !== undefined && before.uid === uid ? before : undefined;
  if (known?.generation === generation && object.metadata.generation !== undefined) return known;
  const document = object['spec'];
  const same = known !== undefined && isSameValue(known.document, document);
  if (same && known.generation === generation) return known;
  const kept = { uid, generation, document };
  if (same) return { ...kept, good: known.good, outcome: outcomeOf(name, generation, known.good, problemsIn(known)) };
  const parsed = parseSlot(name, document, 'camelCase');
  const good = parsed.ok ? parsed.spec : known?.good;
  return { ...kept, good, outcome: outcomeOf(name, generation, good, parsed.ok ? [] : named(parsed.problems)) };
}

function outcomeOf(
  name: SlotName,
  generation: number,
  spec: SlotSpec | undefined,
  problems: readonly SpecProblem[],
): SlotReading['outcome'] {
  return spec === undefined ? { kind: 'refused', problems } : { kind: 'desired', slot: { name, spec, generation, problems } };
}

function problemsIn({ outcome }: SlotReading): readonly SpecProblem[] {
  return outcome.kind === 'refused' ? outcome.problems : outcome.slot.problems;
}

/** With keys as the resource has them. */
function named(problems: readonly SpecProblem[]): readonly SpecProblem[] {
  const shown = problems.slice(0, MOST_PROBLEMS);
  const more = problems.length - shown.length;
  const all = more === 0 ? shown : [...shown, { path: [], message: `There are ${more} more problems` }];
  return all.map((problem) => ({ ...problem, style: 'camelCase' }));
}
