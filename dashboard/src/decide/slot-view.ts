/** How the slots are shown: as cards or as a table, which ones, and in which order. The address keeps it. Pure. */
import type { Pod, Slot, SlotLine } from '../types.ts';
import type { SlotRates } from './token-rates.ts';
import { needsAttention, toneOfSlot } from './slot-facts.ts';

export interface SlotView {
  readonly isTable: boolean;
  readonly search: string;
  readonly sort: Column;
  readonly isDescending: boolean;
  readonly group: (typeof GROUPS)[number];
  /** In the order of `COLUMNS`, always with the name. */
  readonly columns: readonly Column[];
}

/** What a row shows of a slot. Null: unknown, or nothing. */
export interface SlotRow {
  readonly name: string;
  readonly state: ReturnType<typeof toneOfSlot>;
  readonly model: string | null;
  readonly provider: string | null;
  readonly node: string | null;
  readonly backend: string | null;
  readonly memory: number | null;
  readonly inFlight: number;
  readonly pending: number;
  readonly rate: number | null;
  readonly restarts: number;
  /** Reason of the alarm. */
  readonly alarm: string | null;
}
export type Column = keyof SlotRow;

export const COLUMNS = [
  'name',
  'state',
  'alarm',
  'model',
  'provider',
  'node',
  'backend',
  'memory',
  'inFlight',
  'pending',
  'rate',
  'restarts',
] as const satisfies readonly Column[];

export const GROUPS = ['none', 'state', 'provider', 'model', 'node'] as const;

const USUAL_COLUMNS = COLUMNS.filter((column) => column !== 'provider' && column !== 'node');
export const DEFAULT_VIEW: SlotView = {
  isTable: false,
  search: '',
  sort: 'name',
  isDescending: false,
  group: 'none',
  columns: USUAL_COLUMNS,
};

/** `query`: `view=table&sort=-rate&search=qwen&group=state&columns=name,rate`. What is wrong in it counts as absent. */
export function readView(query = ''): SlotView {
  const values = new URLSearchParams(query);
  const [, minus = '', wanted] = /^(-?)(.*)$/.exec(values.get('sort') ?? '') ?? [];
  const chosen = values.get('columns')?.split(',');
  const sort = COLUMNS.find((column) => column === wanted);
  return {
    isTable: values.get('view') === 'table',
    search: values.get('search') ?? '',
    sort: sort ?? DEFAULT_VIEW.sort,
    isDescending: sort !== undefined && minus !== '',
    group: GROUPS.find((group) => group === values.get('group')) ?? DEFAULT_VIEW.group,
    columns: chosen === undefined ? USUAL_COLUMNS : COLUMNS.filter((column) => column === 'name' || chosen.includes(column)),
  };
}

export function writeView({ isTable, search, sort, isDescending, group, columns }: SlotView): string {
  const values = new URLSearchParams();
  if (isTable) values.set('view', 'table');
  if (sort !== DEFAULT_VIEW.sort || isDescending) values.set('sort', `${isDescending ? '-' : ''}${sort}`);
  if (search !== '') values.set('search', search);
  if (group !== DEFAULT_VIEW.group) values.set('group', group);
  if (columns.join() !== USUAL_COLUMNS.join()) values.set('columns', columns.join());
  return values.toString();
}

export const NUMBERS: ReadonlySet<Column> = new Set(['memory', 'inFlight', 'pending', 'rate', 'restarts']);

/** A click on the column that sorts reverses it. Numbers begin with the largest. */
export function sortedBy(view: SlotView, column: Column): SlotView {
  return { ...view, sort: column, isDescending: view.sort === column ? !view.isDescending : NUMBERS.has(column) };
}

type Traffic = Pick<SlotLine, 'in_flight' | 'parked'>;

export function rowOf(slot: Slot, line: Traffic, rates: SlotRates | undefined, node: string | null = null): SlotRow {
  const { model, wanted_model: wanted, provider, backend, memory_bytes: memory, restarts } = slot.status;
  const common = { name: slot.name, state: toneOfSlot(slot), model: model ?? wanted, provider, node, backend, memory, restarts };
  const rate = rates?.tokensPerSecond ?? null;
  return { ...common, inFlight: line.in_flight, pending: line.parked, rate, alarm: needsAttention(slot)?.reason ?? null };
}

/** What is unknown comes last in both directions. Equal ones stay in the order of their names. */
export function sortRows(rows: readonly SlotRow[], { sort, isDescending }: Pick<SlotView, 'sort' | 'isDescending'>): readonly SlotRow[] {
  const compare = (a: SlotRow, b: SlotRow): number => {
    const [one, other] = [a[sort], b[sort]];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const order =
      typeof one === 'number' && typeof other === 'number'
        ? one - other
        : String(one).localeCompare(String(other), 'en', { numeric: true });
    return isDescending ? -order : order;
  };
  return rows.toSorted((a, b) => compare(a, b) || a.name.localeCompare(b.name, 'en', { numeric: true }));
}

/** The groups in the order of their names, with the rows that are shown of each: `most` altogether. */
export function groupRows(rows: readonly SlotRow[], view: Pick<SlotView, 'sort' | 'isDescending' | 'group'>, most: number) {
  let left = most;
  return [...Map.groupBy(sortRows(rows, view), (row) => (view.group === 'none' ? '' : (row[view.group] ?? '')))]
    .toSorted(([one], [other]) => one.localeCompare(other, 'en', { numeric: true }))
    .map(([name, all]) => {
      const shown = all.slice(0, left);
      left -= shown.length;
      return { name, count: all.length, rows: shown };
    });
}

/** The nodes of the pods of each slot. */
export function nodesOf(pods: readonly Pick<Pod, 'slot' | 'node'>[]): ReadonlyMap<string, string> {
  const bySlot = Map.groupBy(pods, ({ slot }) => slot ?? '');
  return new Map([...bySlot].map(([slot, own]) => [slot, [...new Set(own.flatMap(({ node }) => node ?? []))].toSorted().join(', ')]));
}
