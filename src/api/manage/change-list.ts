/**
 * Which items of a list have changed since a client read it last. A version is a number of this process; the client
 * sends it back with its next request, and one that is not known, such as that of an earlier process, means the whole
 * list.
 */
import type { SlotName } from '../../schema/words/names.ts';

export interface Changes<Item> {
  readonly items: readonly Item[];
  readonly version: string;
  /** Names that are gone since; null: `items` is the whole list. */
  readonly removed: readonly SlotName[] | null;
}

interface Known<Item> {
  readonly item: Item;
  /** The version of the list in which it was added or changed. */
  readonly version: number;
}

/** Names that are gone. A client that knows none of the last ones reads the whole list. */
const REMEMBERED = 1000;

export type ChangeList<Item> = (items: ReadonlyMap<SlotName, Item>, since?: string) => Changes<Item>;

/** `epoch`: different for each process. `isSame`: whether a client need not read the item again. */
export function createChangeList<Item>(epoch: string, isSame: (one: Item, other: Item) => boolean): ChangeList<Item> {
  const known = new Map<SlotName, Known<Item>>();
  /** By name, the earliest first. */
  const gone = new Map<SlotName, number>();
  let present = 0;
  /** Removals up to this version are forgotten. */
  let forgotten = 0;

  function update(items: ReadonlyMap<SlotName, Item>): void {
    const next = present + 1;
    for (const [name, item] of items) {
      const before = known.get(name);
      if (before !== undefined && isSame(before.item, item)) continue;
      known.set(name, { item, version: next });
      gone.delete(name);
      present = next;
    }
    if (known.size > items.size)
      for (const name of known.keys()) {
        if (items.has(name)) continue;
        known.delete(name);
        gone.set(name, next);
        present = next;
      }
    for (const [name, version] of gone) {
      if (gone.size <= REMEMBERED) break;
      gone.delete(name);
      forgotten = version;
    }
  }

  return (items, since) => {
    update(items);
    const version = `${epoch}.${present}`;
    const [own, number = ''] = since?.split('.') ?? [];
    const from = own === epoch && /^\d+$/.test(number) ? Number(number) : Number.NaN;
    if (!(from >= forgotten && from <= present)) return { items: [...items.values()], version, removed: null };
    const changed = from === present ? [] : [...items.keys()].flatMap((name) => known.get(name) ?? []);
    return {
      items: changed.filter((each) => each.version > from).map(({ item }) => item),
      version,
      removed: from === present ? [] : [...gone].filter(([, at]) => at > from).map(([name]) => name),
    };
  };
}
