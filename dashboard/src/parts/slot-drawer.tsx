/** Everything about one slot: why it is as it is, what happened to it, what its server says, and its text. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { hashOf, SLOT_TABS, type SlotTab } from '../decide/route.ts';
import { TAB_NAMES } from '../texts.ts';
import { EditTab } from './edit-tab.tsx';
import { ExplainTab } from './explain-tab.tsx';
import { LogsTab } from './logs-tab.tsx';
import { Modal } from './modal.tsx';
import type { TabProps } from './tab-props.ts';
import { TimelineTab } from './timeline-tab.tsx';

const TABS: Readonly<Record<SlotTab, (props: TabProps) => JSX.Element>> = {
  explain: ExplainTab,
  timeline: TimelineTab,
  logs: LogsTab,
  edit: EditTab,
};

export function SlotDrawer(): JSX.Element | null {
  const { place, needsToken } = useApp();
  const { page, slot, tab = 'explain' } = place.value;
  if (page !== 'slots' || slot === undefined || needsToken.value) return null;
  const Tab = TABS[tab];
  return (
    <Modal key={slot} title={slot} kind="drawer" onClose={() => (location.hash = hashOf({ page: 'slots' }))}>
      <nav class="tabs" aria-label={slot}>
        {SLOT_TABS.map((name) => (
          <a key={name} href={hashOf({ page: 'slots', slot, tab: name })} aria-current={name === tab ? 'true' : undefined}>
            {TAB_NAMES[name]}
          </a>
        ))}
      </nav>
      <Tab key={tab} name={slot} />
    </Modal>
  );
}
