import { describe, expect, test } from '@jest/globals';
import { createChangeList, type Changes } from '../../../src/api/manage/change-list.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';

interface Item {
  readonly name: SlotName;
  readonly value: number;
}

interface Client {
  version: string | undefined;
  items: Map<SlotName, Item>;
}

const nameOf = (index: number): SlotName => SlotName.parse(`slot-${index}`);
const listOf = (...items: readonly Item[]): ReadonlyMap<SlotName, Item> => new Map(items.map((item) => [item.name, item]));
const item = (index: number, value = 0): Item => ({ name: nameOf(index), value });
const create = () => createChangeList<Item>('e', (one, other) => one.value === other.value);

describe('createChangeList()', () => {
  test('answers with the whole list first, then with what has changed and what is gone', () => {
    const changes = create();
    const first = changes(listOf(item(1), item(2)));
    expect(first).toEqual({ items: [item(1), item(2)], version: 'e.1', removed: null });
    expect(changes(listOf(item(1), item(2)), first.version)).toEqual({ items: [], version: 'e.1', removed: [] });
    expect(changes(listOf(item(1), item(2, 5), item(3)), first.version)).toEqual({
      items: [item(2, 5), item(3)],
      version: 'e.2',
      removed: [],
    });
    expect(changes(listOf(item(2, 5)), 'e.2')).toEqual({ items: [], version: 'e.3', removed: [nameOf(1), nameOf(3)] });
    // What comes back is no longer gone.
    expect(changes(listOf(item(1), item(2, 5)), 'e.2')).toMatchObject({ items: [item(1)], removed: [nameOf(3)] });
  });

  test.each(['', 'x.1', 'e.', 'e.-1', 'e.99', 'e.1e9', 'e.NaN'])(
    'answers with the whole list for a version that it does not know: "%s"',
    (since) => {
      const changes = create();
      changes(listOf(item(1)));
      expect(changes(listOf(item(1)), since).removed).toBeNull();
    },
  );

  test('forgets what is gone after a thousand removals, and then answers with the whole list', () => {
    const changes = create();
    const many = Array.from({ length: 1500 }, (_, index) => item(index));
    const before = changes(listOf(...many)).version;
    for (let count = 1499; count > 0; count -= 1) changes(listOf(...many.slice(0, count)));
    expect(changes(listOf(item(0)), before).removed).toBeNull();
    const lately = changes(listOf(item(0))).version;
    expect(changes(listOf(), lately)).toMatchObject({ items: [], removed: [nameOf(0)] });
  });

  test('a client that applies each answer has the same list, however seldom it asks', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = createRandom(seed);
      const changes = create();
      let present = new Map<SlotName, Item>();
      const clients: Client[] = [0, 1, 2].map(() => ({ version: undefined, items: new Map() }));
      for (let step = 0; step < 60; step += 1) {
        present = new Map(present);
        const name = random.int(1, 8);
        if (random.chance(0.3)) present.delete(nameOf(name));
        else present.set(nameOf(name), item(name, random.int(0, 3)));
        const client = random.pick([clients[0], ...clients]);
        if (client === undefined) continue;
        const answer = changes(present, client.version);
        client.version = answer.version;
        client.items = applied(client.items, answer);
        expect([seed, step, sorted(client.items)]).toEqual([seed, step, sorted(present)]);
      }
    }
  });
});

function applied(before: ReadonlyMap<SlotName, Item>, { items, removed }: Changes<Item>): Map<SlotName, Item> {
  const next = new Map(removed === null ? [] : before);
  for (const name of removed ?? []) next.delete(name);
  for (const each of items) next.set(each.name, each);
  return next;
}

const sorted = (items: ReadonlyMap<SlotName, Item>): readonly Item[] =>
  [...items.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
