/** The slots as a table, for many of them. It is drawn anew every two seconds, not with each event. */
import type { ComponentChildren, JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { hashOf } from '../decide/route.ts';
import { matchesSearch } from '../decide/slot-facts.ts';
import { COLUMNS, GROUPS, groupRows, nodesOf, NUMBERS, readView, rowOf, sortedBy, writeView, type Column } from '../decide/slot-view.ts';
import { SelectField } from '../parts/fields.tsx';
import { useSelector } from '../parts/use-selector.ts';
import { A, SLOT_COLUMNS } from '../texts-activity.ts';
import { PAGE_NAMES, T } from '../texts.ts';
import { useCluster, useIsCluster } from './pods.tsx';

type Row = ReturnType<typeof rowOf>;

const REDRAWN_SECONDS = 2;
const MOST_SHOWN = 500;
/** The service lists no more. */
const MOST_PODS = 1000;

export function SlotTable(): JSX.Element {
  const { store, place, now } = useApp();
  useSelector(() => Math.floor(now.value / 1000 / REDRAWN_SECONDS));
  const view = readView(place.value.query);
  const cluster = useCluster(undefined, undefined, view.group === 'node' || view.columns.includes('node') ? MOST_PODS : 0);
  const nodes = nodesOf((cluster.kind === 'done' && cluster.value?.pods) || []);
  const rows = (store.names.value ?? []).flatMap((name) => {
    const signals = store.of(name);
    if (signals === undefined || !matchesSearch(signals.slot.peek(), view.search)) return [];
    return rowOf(signals.slot.peek(), signals.line.peek(), signals.rates.peek(), nodes.get(name));
  });
  const order = view.isDescending ? 'descending' : 'ascending';
  const query = place.value.query ?? '';
  return (
    <section class="panel">
      <ViewTools />
      <div class="scroll" tabIndex={0} role="region" aria-label={PAGE_NAMES.slots}>
        <table class="slot-table">
          <thead>
            <tr>
              {view.columns.map((column) => (
                <th key={column} scope="col" class={classOf(column)} aria-sort={view.sort === column ? order : undefined}>
                  <a href={hashOf({ page: 'slots', query: writeView(sortedBy(view, column)) })}>{SLOT_COLUMNS[column]}</a>
                </th>
              ))}
            </tr>
          </thead>
          {groupRows(rows, view, MOST_SHOWN).map((group) => (
            <tbody key={group.name}>
              {view.group !== 'none' && (
                <tr>
                  <th colSpan={view.columns.length} scope="rowgroup">
                    {nameOfGroup(group.name)} ({group.count})
                  </th>
                </tr>
              )}
              {group.rows.map((row) => (
                <tr key={row.name} class={`state-${row.state}`}>
                  {view.columns.map((column) => (
                    <Cell key={column} row={row} column={column} query={query} />
                  ))}
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      </div>
      {rows.length > MOST_SHOWN && <p>{A.slotsShown(MOST_SHOWN, rows.length)}</p>}
    </section>
  );
}

const classOf = (column: Column): string | undefined => (NUMBERS.has(column) ? 'number' : undefined);
const nameOfGroup = (name: string): string => (name === '' ? T.none : name === 'resting' ? T.atRest : name);

/** The choices that the address keeps, so that a bookmark is a saved view. */
function ViewTools(): JSX.Element {
  const { place } = useApp();
  const view = readView(place.value.query);
  const show = (more: Partial<typeof view>): void => location.replace(hashOf({ page: 'slots', query: writeView({ ...view, ...more }) }));
  const hasNodes = useIsCluster();
  const isOffered = (name: string): boolean => name !== 'name' && (name !== 'node' || hasNodes);
  const choose = (column: Column): void => show({ columns: COLUMNS.filter((each) => view.columns.includes(each) !== (each === column)) });
  return (
    <div class="tools">
      <SelectField
        label={A.groupBy}
        value={view.group}
        options={GROUPS.filter(isOffered).map((group) => [group, group === 'none' ? A.notGrouped : SLOT_COLUMNS[group]] as const)}
        onValue={(value) => show({ group: GROUPS.find((group) => group === value) ?? 'none' })}
        isInline
      />
      <details>
        <summary>{A.columns}</summary>
        <div class="choices">
          {COLUMNS.filter(isOffered).map((column) => (
            <label key={column} class="check">
              <input type="checkbox" checked={view.columns.includes(column)} onChange={() => choose(column)} /> {SLOT_COLUMNS[column]}
            </label>
          ))}
        </div>
      </details>
    </div>
  );
}

const CELLS: Readonly<Partial<Record<Column, (row: Row) => ComponentChildren>>> = {
  state: ({ state }) => (
    <span class="badge">
      <span class="dot" aria-hidden="true" /> {nameOfGroup(state)}
    </span>
  ),
  alarm: ({ alarm }) => alarm !== null && <span class="tag bad">{alarm}</span>,
  memory: ({ memory }) => (memory === null ? T.none : formatBytes(memory)),
  rate: ({ rate }) => (rate === null ? T.none : rate.toFixed(1)),
};

function Cell({ row, column, query }: { readonly row: Row; readonly column: Column; readonly query: string }): JSX.Element {
  if (column === 'name')
    return (
      <th scope="row">
        <a href={hashOf({ page: 'slots', slot: row.name, query })}>{row.name}</a>
      </th>
    );
  return <td class={classOf(column)}>{CELLS[column] === undefined ? (row[column] ?? T.none) : CELLS[column](row)}</td>;
}
