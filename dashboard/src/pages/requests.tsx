/** Requests in flight, and those that have ended, the newest first. A tab of the Activity page. */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { formatSeconds, formatTime } from '../decide/format.ts';
import { cachedShare, isRequestShown, percentilesOf, requestsCsv, withNewer, type RequestRow, type Shown } from '../decide/request-rows.ts';
import { hashOf } from '../decide/route.ts';
import { formatCount } from '../decide/usage-totals.ts';
import { messageOf } from '../io/client.ts';
import { saveFile } from '../io/save-file.ts';
import { allSlots } from '../io/store.ts';
import { DataTable } from '../parts/data-table.tsx';
import { SearchField, SelectField } from '../parts/fields.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { A, ACTIVITY_NAMES, REQUEST_FILTERS } from '../texts-activity.ts';
import { T } from '../texts.ts';
import type { RequestEntries } from '../types.ts';

const REFRESH_SECONDS = 2;
const MOST_SHOWN = 200;
const LEFT_STATUS = 499;

export function Requests(): JSX.Element {
  const { client, now } = useApp();
  const [shown, setShown] = useState<Shown>('all');
  const [search, setSearch] = useState('');
  const known = useRef<{ readonly rows: readonly RequestRow[]; readonly last: number }>({ rows: [], last: 0 });
  const round = Math.floor(now.value / 1000 / REFRESH_SECONDS);
  const load = async (signal: AbortSignal): Promise<Pick<RequestEntries, 'in_flight'> & { readonly rows: readonly RequestRow[] }> => {
    const { rows, last: before } = known.current;
    const { requests, in_flight, last } = await client.fetchJson<RequestEntries>(`/api/requests?limit=${MOST_SHOWN}&after=${before}`, {
      signal,
    });
    // The service has begun anew after its clock was set back, and sent everything.
    known.current = { rows: last < before ? requests : withNewer(rows, requests), last };
    return { rows: known.current.rows, in_flight };
  };
  const loaded = useLoaded(load, [round]);
  if (loaded.kind !== 'done') return <LoadStatus loaded={loaded} />;
  const { rows: all, in_flight: running } = loaded.value;
  const rows = all.filter((row) => isRequestShown(row, { shown, search }));
  return (
    <section class="panel">
      <InFlight running={running.length} />
      {running.length > 0 && <Running rows={running} />}
      <div class="choices">
        <SelectField label={A.show} value={shown} options={REQUEST_FILTERS} onValue={(value) => setShown(asShown(value))} isInline />
        <SearchField label={A.searchRequests} value={search} onValue={setSearch} />
        <button
          type="button"
          class="quiet"
          disabled={rows.length === 0}
          onClick={() => saveFile('requests.csv', 'text/csv', requestsCsv(rows))}
        >
          {A.downloadCsv}
        </button>
      </div>
      <Latencies rows={rows} />
      {rows.length === 0 ? <p>{all.length === 0 ? A.noRequests : A.noRequestMatch}</p> : <RequestTable rows={rows} />}
      <p class="why">{A.requestsWhy}</p>
    </section>
  );
}

const asShown = (value: string): Shown => (value === 'troubled' || value === 'failed' ? value : 'all');

const LATENCIES = [
  [A.firstByte, (row) => row.first_seconds],
  [A.duration, (row) => row.seconds],
  [T.pending, (row) => row.parked_seconds],
] as const satisfies readonly (readonly [string, (row: RequestRow) => number | null])[];

/** Percentiles of the listed requests. */
function Latencies({ rows }: { readonly rows: readonly RequestRow[] }): JSX.Element | null {
  const known = LATENCIES.flatMap(([name, read]) => {
    const found = percentilesOf(rows, read);
    return found === undefined ? [] : [{ name, ...found }];
  });
  if (known.length === 0) return null;
  return (
    <ul class="latencies">
      {known.map(({ name, p50, p95, p99 }) => (
        <li key={name}>
          <strong>{name}</strong> p50 {formatSeconds(p50)} · p95 {formatSeconds(p95)} · p99 {formatSeconds(p99)}
        </li>
      ))}
    </ul>
  );
}

/** What is being answered now, and what waits for a slot. The list of running requests is read at other moments. */
function InFlight({ running }: { readonly running: number }): JSX.Element | null {
  const { store } = useApp();
  const busy = allSlots(store).flatMap(({ name }) => {
    const { in_flight: inFlight, parked } = store.of(name)?.line.value ?? { in_flight: 0, parked: 0 };
    return inFlight + parked === 0 ? [] : [{ name, inFlight, parked }];
  });
  if (busy.length === 0 && running > 0) return null;
  return (
    <p class="in-flight" role="status">
      {busy.length === 0
        ? A.nothingInFlight
        : busy.map(({ name, inFlight, parked }) => (
            <span key={name} class="tag">
              {A.inFlight(name, inFlight, parked)}
            </span>
          ))}
    </p>
  );
}

const RUNNING_TITLES = [A.slot, A.request, A.state, A.duration, A.caller, A.action];

/** Requests that have not ended, the oldest first, and the button that ends one. */
function Running({ rows }: { readonly rows: RequestEntries['in_flight'] }): JSX.Element {
  const { client } = useApp();
  const mayCancel = useMay()('admin');
  const [failure, setFailure] = useState('');
  const cancel = (id: string): void => {
    const path = `/api/requests/${encodeURIComponent(id)}`;
    client.fetchJson(path, { method: 'DELETE' }).then(
      () => setFailure(''),
      (error: unknown) => setFailure(messageOf(error)),
    );
  };
  return (
    <>
      {failure !== '' && <p role="alert">{failure}</p>}
      <DataTable label={A.running} titles={mayCancel ? RUNNING_TITLES : RUNNING_TITLES.slice(0, -1)}>
        {rows.slice(0, MOST_SHOWN).map(({ id, slot, route, state, seconds, caller }) => (
          <tr key={id}>
            <td>{slot ?? T.none}</td>
            <td>
              <code>{route}</code>
            </td>
            <td>{A.runningStates[state]}</td>
            <td>{formatSeconds(seconds)}</td>
            <td>{caller ?? T.none}</td>
            {mayCancel && (
              <td>
                <button type="button" class="quiet" aria-label={A.cancelRequest(id)} onClick={() => cancel(id)}>
                  {T.cancel}
                </button>
              </td>
            )}
          </tr>
        ))}
      </DataTable>
    </>
  );
}

function RequestTable({ rows }: { readonly rows: readonly RequestRow[] }): JSX.Element {
  return (
    <>
      <DataTable
        label={ACTIVITY_NAMES.requests}
        titles={[
          A.time,
          A.slot,
          A.request,
          A.status,
          A.duration,
          T.pending,
          A.firstByte,
          A.rate,
          A.inputTokens,
          A.cachedTokens,
          A.outputTokens,
          A.caller,
          A.cause,
        ]}
      >
        {rows.slice(0, MOST_SHOWN).map((row) => (
          <RequestLine key={row.number} row={row} />
        ))}
      </DataTable>
      {rows.length > MOST_SHOWN && <p>{A.requestsShown(MOST_SHOWN, rows.length)}</p>}
    </>
  );
}

function RequestLine({ row }: { readonly row: RequestRow }): JSX.Element {
  const { now } = useApp();
  const { at, caller, slot, route, status, code, because, seconds, first_seconds: first, parked_seconds: parked, why } = row;
  const time = (value: number | null): string => (value === null ? T.none : formatSeconds(value));
  const count = (value: number | null): string => (value === null ? T.none : formatCount(value));
  return (
    <tr>
      <td>{formatTime(at, now.peek())}</td>
      <td>{slot === null ? T.none : <a href={hashOf({ page: 'slots', slot, tab: 'logs' })}>{slot}</a>}</td>
      <td>
        <code>{route}</code>
      </td>
      <td>
        <span class={because === 'failed' ? 'tag bad' : 'tag'}>{because === 'slow' ? A.slow : status}</span>
        {status === LEFT_STATUS ? ` ${A.clientClosed}` : code !== null && ` ${code}`}
      </td>
      <td>{formatSeconds(seconds)}</td>
      <td>{time(parked)}</td>
      <td>{time(first)}</td>
      <td>{row.tokens_per_second === null || row.tokens_per_second === 0 ? T.none : row.tokens_per_second.toFixed(1)}</td>
      <td>{count(row.input_tokens)}</td>
      <td>{cachedShare(row) ?? T.none}</td>
      <td>{count(row.output_tokens)}</td>
      <td>{caller ?? T.none}</td>
      <td title={why?.message}>{why?.cause ?? T.none}</td>
    </tr>
  );
}
