import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SlotName } from '../../src/schema/words/names.ts';
import { hashOf, readPlace } from '../../dashboard/src/decide/route.ts';
import {
  COLUMNS,
  DEFAULT_VIEW,
  GROUPS,
  groupRows,
  nodesOf,
  readView,
  sortedBy,
  sortRows,
  writeView,
  type SlotRow,
} from '../../dashboard/src/decide/slot-view.ts';

const row = (name: string, more: Partial<SlotRow> = {}): SlotRow => ({
  name,
  state: 'ready',
  model: null,
  provider: null,
  node: null,
  backend: null,
  memory: null,
  inFlight: 0,
  pending: 0,
  rate: null,
  restarts: 0,
  alarm: null,
  ...more,
});
const namesOf = (rows: readonly SlotRow[]): string => rows.map(({ name }) => name).join(' ');

describe('the view of the slots', () => {
  test('is kept by the address, with an open slot as well', () => {
    const views = fc.record({
      isTable: fc.boolean(),
      search: fc.string(),
      sort: fc.constantFrom(...COLUMNS),
      isDescending: fc.boolean(),
      group: fc.constantFrom(...GROUPS),
      columns: fc.subarray([...COLUMNS]).map((some) => COLUMNS.filter((column) => column === 'name' || some.includes(column))),
    });
    fc.assert(
      fc.property(views, (view) => {
        const query = writeView(view);
        for (const place of [{ page: 'slots' }, { page: 'slots', slot: 'a/b?c', tab: 'logs' }] as const) {
          const read = readPlace(hashOf({ ...place, query }));
          expect(read).toMatchObject(place);
          expect(readView(read.query)).toEqual(view);
        }
      }),
    );
    expect(writeView(DEFAULT_VIEW)).toBe('');
    expect(hashOf({ page: 'slots', query: '' })).toBe('#/slots');
  });

  test.each(['view=grid&sort=nothing', 'sort=-', 'sort=', '&&=&%', 'sort=toString', 'group=rate'])('is the usual one for "%s"', (query) => {
    expect(readView(query)).toEqual(DEFAULT_VIEW);
  });

  test('is of the slots only', () => {
    expect(readPlace('#/models?view=table')).toEqual({ page: 'models' });
  });

  test('begins with the largest number, and reverses with a second click', () => {
    const first = sortedBy(DEFAULT_VIEW, 'rate');
    expect(first).toMatchObject({ sort: 'rate', isDescending: true });
    expect(sortedBy(first, 'rate')).toMatchObject({ sort: 'rate', isDescending: false });
    expect(sortedBy(first, 'model')).toMatchObject({ sort: 'model', isDescending: false });
  });

  test('sorts by numbers and words, with what is unknown at the end', () => {
    const rows = [row('b', { rate: 9 }), row('a'), row('slot-10', { rate: 10 }), row('slot-9', { rate: 10, model: 'm' })];
    expect(namesOf(sortRows(rows, { sort: 'rate', isDescending: true }))).toBe('slot-9 slot-10 b a');
    expect(namesOf(sortRows(rows, { sort: 'rate', isDescending: false }))).toBe('b slot-9 slot-10 a');
    expect(namesOf(sortRows(rows, { sort: 'name', isDescending: true }))).toBe('slot-10 slot-9 b a');
    expect(namesOf(sortRows(rows, { sort: 'model', isDescending: true }))).toBe('slot-9 a b slot-10');
  });

  test.each([
    ['columns=', ['name']],
    ['columns=rate,nothing,state', ['name', 'state', 'rate']],
  ])('has the columns of "%s" in their usual order, and always the name', (query, columns) => {
    expect(readView(query).columns).toEqual(columns);
  });

  test.each([
    ['none', 10, [['', 4, 'a b c d']]],
    [
      'model',
      10,
      [
        ['', 1, 'c'],
        ['fox', 2, 'a d'],
        ['owl', 1, 'b'],
      ],
    ],
    [
      'model',
      2,
      [
        ['', 1, 'c'],
        ['fox', 2, 'a'],
        ['owl', 1, ''],
      ],
    ],
    ['node', 10, [['', 4, 'a b c d']]],
  ] as const)('groups by %s, and shows %d rows', (group, most, expected) => {
    const rows = [row('d', { model: 'fox' }), row('c'), row('b', { model: 'owl' }), row('a', { model: 'fox' })];
    const groups = groupRows(rows, { group, sort: 'name', isDescending: false }, most);
    expect(groups.map(({ name, count, rows: shown }) => [name, count, namesOf(shown)])).toEqual(expected);
  });

  test('names each node of a slot once', () => {
    const pod = (slot: string | null, node: string | null) => ({ slot: slot === null ? null : SlotName.parse(slot), node });
    const nodes = nodesOf([pod('a', 'n2'), pod('a', 'n1'), pod('a', 'n2'), pod('b', null), pod(null, 'n1')]);
    expect([nodes.get('a'), nodes.get('b'), nodes.get('c')]).toEqual(['n1, n2', '', undefined]);
  });
});
