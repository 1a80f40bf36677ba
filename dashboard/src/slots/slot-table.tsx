/** The slots as a table, for many of them. It is drawn anew every two seconds, not with each event. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { hashOf } from '../decide/route.ts';
import { matchesSearch } from '../decide/slot-facts.ts';
import { COLUMNS, readView, rowOf, sortedBy, sortRows, writeView, type SlotRow } from '../decide/slot-view.ts';
import { useSelector } from '../parts/use-selector.ts';
import { A, SLOT_COLUMNS } from '../texts-activity.ts';
import { PAGE_NAMES, T } from '../texts.ts';

const REDRAWN_SECONDS = 2;
const MOST_SHOWN = 500;

export function SlotTable(): JSX.Element {
  const { store, place, now } = useApp();
  useSelector(() => Math.floor(now.value / 1000 / REDRAWN_SECONDS));
  const view = readView(place.value.query);
  const rows = (store.names.value ?? []).flatMap((name) => {
    const signals = store.of(name);
    if (signals === undefined || !matchesSearch(signals.slot.peek(), view.search)) return [];
    return rowOf(signals.slot.peek(), signals.line.peek(), signals.rates.peek());
  });
  const order = view.isDescending ? 'descending' : 'ascending';
  return (
    <section class="panel">
      <div class="scroll" tabIndex={0} role="region" aria-label={PAGE_NAMES.slots}>
        <table class="slot-table">
          <thead>
            <tr>
              {COLUMNS.map((column) => (
                <th key={column} scope="col" aria-sort={view.sort === column ? order : undefined}>
                  <a href={hashOf({ page: 'slots', query: writeView(sortedBy(view, column)) })}>{SLOT_COLUMNS[column]}</a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sortRows(rows, view)
              .slice(0, MOST_SHOWN)
              .map((row) => (
                <TableRow key={row.name} row={row} query={place.value.query ?? ''} />
              ))}
          </tbody>
        </table>
      </div>
      {rows.length > MOST_SHOWN && <p>{A.slotsShown(MOST_SHOWN, rows.length)}</p>}
    </section>
  );
}

function TableRow({ row, query }: { readonly row: SlotRow; readonly query: string }): JSX.Element {
  const { name, state, alarm, model, backend, memory, inFlight, pending, rate, restarts } = row;
  return (
    <tr class={`state-${state}`}>
      <th scope="row">
        <a href={hashOf({ page: 'slots', slot: name, query })}>{name}</a>
      </th>
      <td>
        <span class="badge">
          <span class="dot" aria-hidden="true" /> {state === 'resting' ? T.atRest : state}
        </span>
      </td>
      <td>{alarm !== null && <span class="tag bad">{alarm}</span>}</td>
      <td>{model ?? T.none}</td>
      <td>{backend ?? T.none}</td>
      <td>{memory === null ? T.none : formatBytes(memory)}</td>
      <td>{inFlight}</td>
      <td>{pending}</td>
      <td>{rate === null ? T.none : rate.toFixed(1)}</td>
      <td>{restarts}</td>
    </tr>
  );
}
