/** Timeline entries with their causes. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { hashOf } from '../decide/route.ts';
import type { TimelineEntry } from '../types.ts';

interface EntryListProps {
  /** Newest first. */
  readonly entries: readonly TimelineEntry[];
  readonly withSlot: boolean;
}

export function EntryList({ entries, withSlot }: EntryListProps): JSX.Element {
  const { now } = useApp();
  return (
    <ol class="entries">
      {entries.map(({ seq, at, slot, kind, message, cause, to }) => (
        <li key={seq} class={to === null ? `kind-${kind}` : `kind-${kind} state-${to}`}>
          <time dateTime={at ?? ''}>{formatTime(at, now.peek())}</time>
          <span class="tag">{kind}</span>
          <span>
            {withSlot && <a href={hashOf({ page: 'slots', slot, tab: 'timeline' })}>{slot}</a>} {message}
            {cause !== null && cause !== '' && <small>{cause}</small>}
          </span>
        </li>
      ))}
    </ol>
  );
}
