/** Compares two boards as requests see them. Pure. */
import type { RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { SpecProblem } from '../../../schema/slot/slot-spec.ts';

/** `set`: new and replaced entries. `order`: all keys, unless new ones come last and the others keep their order. */
export interface MapChange<Key, Value> {
  readonly set: readonly (readonly [Key, Value])[];
  readonly removed: readonly Key[];
  readonly order?: readonly Key[];
}

/** Undefined: unchanged. */
export interface BoardChange {
  readonly version: number;
  readonly slots?: MapChange<SlotName, RoutedSlot> | undefined;
  readonly names?: MapChange<string, readonly SlotName[]> | undefined;
  readonly refused?: readonly (readonly [SlotName, readonly SpecProblem[]])[] | undefined;
}

export const NO_BOARD: RoutedView = { version: 0, slots: new Map(), names: new Map(), refused: new Map() };

/** Undefined if requests would see no difference. */
export function compareBoards(before: RoutedView, after: RoutedView): BoardChange | undefined {
  const slots = compareMaps(before.slots, after.slots, isSameForRequests);
  const names = compareMaps(before.names, after.names, isSameValue);
  const isSame = before.refused === after.refused || isSameValue([...before.refused], [...after.refused]);
  // Requests wait for the first board.
  if (slots === undefined && names === undefined && isSame && before.version > 0 === after.version > 0) return undefined;
  return { version: after.version, slots: slots && mapValues(slots, routedPart), names, refused: isSame ? undefined : [...after.refused] };
}

export function applyBoardChange(before: RoutedView, { version, slots, names, refused }: BoardChange): RoutedView {
  return {
    version,
    slots: applyToMap(before.slots, slots),
    names: applyToMap(before.names, names),
    refused: refused === undefined ? before.refused : new Map(refused),
  };
}

const isSameForRequests = (one: RoutedSlot, other: RoutedSlot): boolean => one === other || isSameValue(routedPart(one), routedPart(other));

/** Progress changes too often to be sent to each worker. */
function routedPart({ name, capabilities, model, voices, admission, targets, spec, status }: RoutedSlot): RoutedSlot {
  const waited = admission.kind === 'park' && status !== undefined ? { status: { state: status.state } } : {};
  return { name, capabilities, model, ...(voices === undefined ? {} : { voices }), admission, targets, spec, ...waited };
}

function compareMaps<Key, Value>(
  before: ReadonlyMap<Key, Value>,
  after: ReadonlyMap<Key, Value>,
  isSame: (one: Value, other: Value) => boolean,
): MapChange<Key, Value> | undefined {
  if (before === after) return undefined;
  const set: (readonly [Key, Value])[] = [];
  for (const [key, value] of after) {
    const known = before.get(key);
    if (known === undefined || !isSame(known, value)) set.push([key, value]);
  }
  const removed = [...before.keys()].filter((key) => !after.has(key));
  const change = { set, removed };
  if (!hasKeysOf(applyToMap(before, change), after)) return { ...change, order: [...after.keys()] };
  return set.length === 0 && removed.length === 0 ? undefined : change;
}

function hasKeysOf(one: ReadonlyMap<unknown, unknown>, other: ReadonlyMap<unknown, unknown>): boolean {
  const keys = one.keys();
  for (const key of other.keys()) if (keys.next().value !== key) return false;
  return one.size === other.size;
}

function applyToMap<Key, Value>(before: ReadonlyMap<Key, Value>, change: MapChange<Key, Value> | undefined): ReadonlyMap<Key, Value> {
  if (change === undefined) return before;
  const next = new Map(before);
  for (const key of change.removed) next.delete(key);
  for (const [key, value] of change.set) next.set(key, value);
  return change.order === undefined ? next : inOrder(next, change.order);
}

function inOrder<Key, Value>(entries: ReadonlyMap<Key, Value>, keys: readonly Key[]): ReadonlyMap<Key, Value> {
  const ordered = new Map<Key, Value>();
  for (const key of keys) {
    const value = entries.get(key);
    if (value !== undefined) ordered.set(key, value);
  }
  return ordered;
}

const mapValues = <Key, Value, Other>(change: MapChange<Key, Value>, made: (value: Value) => Other): MapChange<Key, Other> => ({
  ...change,
  set: change.set.map(([key, value]) => [key, made(value)] as const),
});
