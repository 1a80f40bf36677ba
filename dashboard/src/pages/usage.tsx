/** What callers, models or slots have used, and what it costs. A tab of the Activity page. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatSeconds } from '../decide/format.ts';
import { stepOf, type Measure } from '../decide/usage-bars.ts';
import { formatCost, formatCount, formatEnergy, totalOf, type UsageTotals } from '../decide/usage-totals.ts';
import { DataTable } from '../parts/data-table.tsx';
import { SelectField } from '../parts/fields.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { A, ACTIVITY_NAMES, USAGE_GROUPS, USAGE_MEASURES, USAGE_RANGES } from '../texts-activity.ts';
import { T } from '../texts.ts';
import type { UsageReport, UsageRow } from '../types.ts';
import { UsageChart } from './usage-chart.tsx';

const REFRESH_SECONDS = 30;
const HOUR_MS = 3_600_000;
const MOST_SHOWN = 200;

export function Usage(): JSX.Element {
  const { client, now, store } = useApp();
  const [hours, setHours] = useState('24');
  const [by, setBy] = useState('token');
  const [measure, setMeasure] = useState<Measure>('requests');
  const step = stepOf(Number(hours));
  const round = Math.floor(now.value / 1000 / REFRESH_SECONDS);
  const load = async (signal: AbortSignal) => {
    // The service rounds down to the hour.
    const since = new Date(now.peek() - (Number(hours) - 1) * HOUR_MS).toISOString();
    const read = async (group: string) =>
      await client.fetchJson<UsageReport>(`/api/usage?${new URLSearchParams({ since, by: group }).toString()}`, { signal });
    const [sums, overTime] = await Promise.all([read(by), read(step)]);
    return { sums, overTime, step };
  };
  const loaded = useLoaded(load, [round, hours, by]);
  return (
    <section class="panel">
      <div class="choices">
        <SelectField label={A.range} value={hours} options={USAGE_RANGES} onValue={setHours} isInline />
        <SelectField label={A.groupBy} value={by} options={USAGE_GROUPS} onValue={setBy} isInline />
        <SelectField
          label={A.measure}
          value={measure}
          options={USAGE_MEASURES}
          onValue={(value) => setMeasure(USAGE_MEASURES.find(([id]) => id === value)?.[0] ?? 'requests')}
          isInline
        />
      </div>
      {loaded.kind === 'done' ? (
        <>
          {loaded.value.overTime.usage.length > 0 && (
            <UsageChart report={loaded.value.overTime} step={loaded.value.step} measure={measure} entries={store.recent.value} />
          )}
          <Report report={loaded.value.sums} by={by} />
        </>
      ) : (
        <LoadStatus loaded={loaded} />
      )}
    </section>
  );
}

function Report({ report: { usage, problem }, by }: { readonly report: UsageReport; readonly by: string }): JSX.Element {
  const rows = usage.toSorted((one, other) => costOf(other) - costOf(one) || other.output_tokens - one.output_tokens);
  const extras = EXTRAS.filter(({ text }) => rows.some((row) => text(row) !== ''));
  const group = USAGE_GROUPS.find(([id]) => id === by)?.[1] ?? '';
  const names = [group, A.requests, A.errors, A.inputTokens, A.cachedTokens, A.outputTokens, A.busy, ...extras.map(({ title }) => title)];
  return (
    <>
      {problem !== null && <p class="note">{problem}</p>}
      {rows.length === 0 && problem === null && <p>{A.noUsage}</p>}
      {rows.length > 0 && (
        <DataTable label={ACTIVITY_NAMES.usage} titles={names} numbers foot={<Line name={A.sum} sum={totalOf(rows)} extras={extras} />}>
          {rows.slice(0, MOST_SHOWN).map((row) => (
            <Line key={nameOf(row)} name={row.label ?? nameOf(row)} sum={row} extras={extras} />
          ))}
        </DataTable>
      )}
      {rows.length > MOST_SHOWN && <p>{A.usageShown(MOST_SHOWN, rows.length)}</p>}
      {rows.some((row) => row.estimated_requests > 0) && <p class="why">{A.guessed}</p>}
    </>
  );
}

/** Columns that are shown only where they say something. */
const EXTRAS = [
  { title: A.audio, text: ({ audio_seconds: seconds }: UsageTotals) => (seconds === null ? '' : formatSeconds(seconds)) },
  { title: A.images, text: ({ images }: UsageTotals) => (images === null ? '' : formatCount(images)) },
  { title: A.loads, text: ({ loads }: UsageTotals) => (loads === 0 ? '' : formatCount(loads)) },
  { title: A.evictions, text: ({ evictions }: UsageTotals) => (evictions === 0 ? '' : formatCount(evictions)) },
  { title: A.energy, text: ({ energy_wh: energy }: UsageTotals) => (energy === null ? '' : formatEnergy(energy)) },
  {
    title: A.cost,
    text: ({ cost, estimated_requests: guessed }: UsageTotals) => (guessed > 0 && cost.length > 0 ? '~' : '') + formatCost(cost),
  },
] as const;

interface LineProps {
  readonly name: string;
  readonly sum: UsageTotals;
  readonly extras: readonly (typeof EXTRAS)[number][];
}

function Line({ name, sum, extras }: LineProps): JSX.Element {
  const isGuessed = sum.estimated_requests > 0;
  return (
    <tr>
      <th scope="row">{name === '' ? T.none : name}</th>
      <td>{formatCount(sum.requests)}</td>
      <td>{formatCount(sum.errors)}</td>
      <td>{formatCount(sum.input_tokens, isGuessed)}</td>
      <td>{formatCount(sum.cached_tokens)}</td>
      <td>{formatCount(sum.output_tokens, isGuessed)}</td>
      <td>{formatSeconds(sum.busy_seconds)}</td>
      {extras.map(({ title, text }) => (
        <td key={title}>{text(sum) || T.none}</td>
      ))}
    </tr>
  );
}

const nameOf = ({ caller, slot, model }: UsageRow): string => caller ?? slot ?? model ?? '';
/** Only for the order. */
const costOf = ({ cost }: UsageRow): number => cost.reduce((sum, { amount }) => sum + amount, 0);
