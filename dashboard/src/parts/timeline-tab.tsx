/** What happened to a slot, newest first; new entries appear as they happen. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { T } from '../texts.ts';
import type { Timeline } from '../types.ts';
import { EntryList } from './entry-list.tsx';
import type { TabProps } from './tab-props.ts';
import { useLoaded } from './use-loaded.ts';

export function TimelineTab({ name }: TabProps): JSX.Element {
  const { client, store } = useApp();
  const last = store.of(name)?.lastEvent.value?.seq;
  const path = `/api/slots/${encodeURIComponent(name)}/timeline?limit=300`;
  const loaded = useLoaded((signal) => client.ask<Timeline>(path, { signal }), [name, last]);
  return (
    <div class="tab">
      {loaded.kind === 'loading' && <p role="status">{T.loading}</p>}
      {loaded.kind === 'failed' && <p role="alert">{loaded.message}</p>}
      {loaded.kind === 'done' && loaded.value.entries.length === 0 && <p>{T.noTimeline}</p>}
      {loaded.kind === 'done' && <EntryList entries={loaded.value.entries.toReversed()} withSlot={false} />}
    </div>
  );
}
