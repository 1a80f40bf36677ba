/** The Activity page: live events, drift, requests, usage, who changed what, and logs. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { hashOf, type ActivityPart } from '../decide/route.ts';
import { matchesEntry } from '../decide/slot-facts.ts';
import { DataTable } from '../parts/data-table.tsx';
import { SearchField, SelectField } from '../parts/fields.tsx';
import { EntryList } from '../parts/entry-list.tsx';
import { LogsTab } from '../slots/logs-tab.tsx';
import { TabbedPage } from '../parts/tabbed-page.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { AgentPlanList } from './agent-plans.tsx';
import { A, ACTIVITY_NAMES } from '../texts-activity.ts';
import { T } from '../texts.ts';
import { Requests } from './requests.tsx';
import { Usage } from './usage.tsx';
import type { Changes, TimelineEntry } from '../types.ts';

const MAX_SHOWN = 200;
const CHANGES_SECONDS = 5;

const SHOWN: Readonly<Record<ActivityPart, () => JSX.Element>> = {
  timeline: () => <Entries isShown={() => true} empty={A.empty} />,
  drift: () => <Entries isShown={({ kind }) => kind === 'drift'} empty={A.noDrift} />,
  requests: Requests,
  usage: Usage,
  changes: () => (
    <>
      <AgentPlanList />
      <ChangeList />
    </>
  ),
  logs: Logs,
};

const NEEDS = { requests: 'all', usage: 'all', changes: 'admin', logs: 'all' } as const;

export function ActivityPage(): JSX.Element {
  return <TabbedPage page="activity" names={ACTIVITY_NAMES} parts={SHOWN} needs={NEEDS} />;
}

interface EntriesProps {
  readonly isShown: (entry: TimelineEntry) => boolean;
  readonly empty: string;
}

function Entries({ isShown, empty }: EntriesProps): JSX.Element {
  const { store } = useApp();
  const [search, setSearch] = useState('');
  const entries = store.recent.value.filter(isShown);
  const found = entries.filter((entry) => matchesEntry(entry, search)).slice(0, MAX_SHOWN);
  if (entries.length === 0) return <p class="panel empty">{empty}</p>;
  return (
    <section class="panel">
      <SearchField label={A.search} value={search} onValue={setSearch} />
      {found.length === 0 ? <p>{A.noMatch}</p> : <EntryList entries={found} withSlot />}
    </section>
  );
}

function ChangeList(): JSX.Element {
  const { client, now } = useApp();
  const round = Math.floor(now.value / 1000 / CHANGES_SECONDS);
  const loaded = useLoaded((signal) => client.fetchJson<Changes>('/api/audit', { signal }), [round]);
  if (loaded.kind !== 'done') return <LoadStatus loaded={loaded} />;
  const { changes } = loaded.value;
  if (changes.length === 0) return <p class="panel empty">{A.noChanges}</p>;
  return (
    <section class="panel">
      <p class="why">{A.changesWhy}</p>
      <DataTable label={ACTIVITY_NAMES.changes} titles={[A.time, A.who, A.did]}>
        {changes.map(({ at, who, message, request_id: id }) => (
          <tr key={`${at} ${id} ${message}`}>
            <td>{formatTime(at, now.peek())}</td>
            <td>{who}</td>
            <td>{message}</td>
          </tr>
        ))}
      </DataTable>
    </section>
  );
}

function Logs(): JSX.Element {
  const { store, place } = useApp();
  const names = store.names.value ?? [];
  const asked = place.value.slot;
  const slot = asked !== undefined && names.includes(asked) ? asked : names[0];
  if (slot === undefined) return <p class="panel empty">{T.noSlots}</p>;
  return (
    <section class="panel">
      <SelectField
        label={A.slot}
        value={slot}
        options={names}
        onValue={(next) => (location.hash = hashOf({ page: 'activity', part: 'logs', slot: next }))}
        isInline
      />
      <LogsTab key={slot} name={slot} />
    </section>
  );
}
