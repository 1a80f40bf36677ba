/** What happens to all slots, as it happens. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { EntryList } from '../parts/entry-list.tsx';
import { PAGE_NAMES, T } from '../texts.ts';

const MOST_SHOWN = 200;

export function ActivityPage(): JSX.Element {
  const { store } = useApp();
  const entries = store.recent.value.slice(0, MOST_SHOWN);
  return (
    <>
      <div class="page-head">
        <h1>{PAGE_NAMES.activity}</h1>
        <p>{T.activityHint}</p>
      </div>
      {entries.length === 0 ? <p>{T.activityEmpty}</p> : <EntryList entries={entries} withSlot />}
    </>
  );
}
