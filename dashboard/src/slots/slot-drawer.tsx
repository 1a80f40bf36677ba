/** The drawer of a slot with its tabs. */
import type { JSX } from 'preact';
import { useApp, useMay } from '../app-context.ts';
import { hashOf, SLOT_TABS, TAB_ACCESS, type SlotTab } from '../decide/route.ts';
import { EntryList } from '../parts/entry-list.tsx';
import { Modal } from '../parts/modal.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { T, TAB_NAMES } from '../texts.ts';
import type { Timeline } from '../types.ts';
import { EditTab } from './edit-tab.tsx';
import { ExplainTab } from './explain-tab.tsx';
import { HistoryTab } from './history-tab.tsx';
import { LastChange } from './last-change.tsx';
import { LogsTab } from './logs-tab.tsx';

const TABS: Readonly<Record<SlotTab, (props: { readonly name: string }) => JSX.Element>> = {
  explain: ExplainTab,
  timeline: TimelineTab,
  logs: LogsTab,
  history: HistoryTab,
  edit: EditTab,
};

export function SlotDrawer(): JSX.Element | null {
  const { place, needsToken } = useApp();
  const may = useMay();
  const { page, slot, tab = 'explain', query = '' } = place.value;
  if (page !== 'slots' || slot === undefined || needsToken.value) return null;
  const Tab = TABS[may(TAB_ACCESS[tab]) ? tab : 'explain'];
  return (
    <Modal key={slot} title={slot} kind="drawer" onClose={() => (location.hash = hashOf({ page: 'slots', query }))}>
      <nav class="tabs" aria-label={slot}>
        {SLOT_TABS.filter((name) => may(TAB_ACCESS[name])).map((name) => (
          <a key={name} href={hashOf({ page: 'slots', slot, tab: name, query })} aria-current={name === tab ? 'true' : undefined}>
            {TAB_NAMES[name]}
          </a>
        ))}
      </nav>
      <Tab key={tab} name={slot} />
    </Modal>
  );
}

/** Newest first. New entries appear as they happen. */
function TimelineTab({ name }: { readonly name: string }): JSX.Element {
  const { client, store } = useApp();
  const last = store.of(name)?.lastEvent.value?.seq;
  const path = `/api/slots/${encodeURIComponent(name)}/timeline?limit=300`;
  const loaded = useLoaded((signal) => client.fetchJson<Timeline>(path, { signal }), [name, last]);
  return (
    <div class="tab">
      <LoadStatus loaded={loaded} />
      {loaded.kind === 'done' && loaded.value.entries.length === 0 && <p>{T.noTimeline}</p>}
      {loaded.kind === 'done' && <LastChange entries={loaded.value.entries} />}
      {loaded.kind === 'done' && <EntryList entries={loaded.value.entries.toReversed()} withSlot={false} />}
    </div>
  );
}
