/** How the slots are shown: as cards or as a table, which ones, and in which order. The address keeps it. Pure. */
import type { Slot, SlotLine } from '../types.ts';
import type { SlotRates } from './token-rates.ts';
import { needsAttention, toneOfSlot } from './slot-facts.ts';

export interface SlotView {
  readonly isTable: boolean;
  readonly search: string;
  readonly sort: Column;
  readonly isDescending: boolean;
}

/** What a row shows of a slot. Null: unknown, or nothing. */
export interface SlotRow {
  readonly name: string;
  readonly state: ReturnType<typeof toneOfSlot>;
  readonly model: string | null;
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
  'backend',
  'memory',
  'inFlight',
  'pending',
  'rate',
  'restarts',
] as const satisfies readonly Column[];

export const DEFAULT_VIEW: SlotView = { isTable: false, search: '', sort: 'name', isDescending: false };

/** `query`: `view=table&sort=-rate&search=qwen`. What is wrong in it counts as absent. */
export function readView(query = ''): SlotView {
  const values = new URLSearchParams(query);
  const [, minus = '', wanted] = /^(-?)(.*)$/.exec(values.get('sort') ?? '') ?? [];
  const sort = COLUMNS.find((column) => column === wanted);
  return {
    isTable: values.get('view') === 'table',
    search: values.get('search') ?? '',
    sort: sort ?? DEFAULT_VIEW.sort,
    isDescending: sort !== undefined && minus !== '',
  };
}

export function writeView({ isTable, search, sort, isDescending }: SlotView): string {
  const values = new URLSearchParams();
  if (isTable) values.set('view', 'table');
  if (sort !== DEFAULT_VIEW.sort || isDescending) values.set('sort', `${isDescending ? '-' : ''}${sort}`);
  if (search !== '') values.set('search', search);
  return values.toString();
}

const NUMBERS: ReadonlySet<Column> = new Set(['memory', 'inFlight', 'pending', 'rate', 'restarts']);

/** A click on the column that sorts reverses it. Numbers begin with the largest. */
export function sortedBy(view: SlotView, column: Column): SlotView {
  return { ...view, sort: column, isDescending: view.sort === column ? !view.isDescending : NUMBERS.has(column) };
}

export function rowOf(slot: Slot, line: Pick<SlotLine, 'in_flight' | 'parked'>, rates: SlotRates | undefined): SlotRow {
  const { model, wanted_model: wanted, backend, memory_bytes: memory, restarts } = slot.status;
  const common = { name: slot.name, state: toneOfSlot(slot), model: model ?? wanted, backend, memory, restarts };
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
