/** The revisions of a slot, newest first, each with an undo. */
import type { JSX } from 'preact';
import { useApp, useMay } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { T } from '../texts.ts';
import type { Revision, Revisions } from '../types.ts';
import { undoChange } from './slot-actions.ts';

export function HistoryTab({ name }: { readonly name: string }): JSX.Element {
  const { client, store } = useApp();
  const slot = store.of(name)?.slot.value;
  const path = `/api/slots/${encodeURIComponent(name)}/revisions`;
  const loaded = useLoaded((signal) => client.fetchJson<Revisions>(path, { signal }), [name, slot]);
  return (
    <div class="tab">
      <LoadStatus loaded={loaded} />
      {loaded.kind === 'done' && loaded.value.revisions.length === 0 && <p>{loaded.value.kept ? T.noHistory : T.historyOff}</p>}
      {loaded.kind === 'done' && (
        <ol class="entries">
          {loaded.value.revisions.map((revision) => (
            <Entry key={revision.revision} slot={name} revision={revision} />
          ))}
        </ol>
      )}
    </div>
  );
}

function Entry({ slot, revision }: { readonly slot: string; readonly revision: Revision }): JSX.Element {
  const { now, change } = useApp();
  const may = useMay();
  const { revision: number, at, who, undo_of: undoOf, outcome, present, message } = revision;
  return (
    <li>
      <time dateTime={at ?? ''}>{formatTime(at, now.peek())}</time>
      <span class="tag">{T.outcome[outcome]}</span>
      <span>
        {T.revision(number)}, {who}
        {undoOf !== null && `, ${T.undoOf(undoOf)}`}
        {message !== null && <small>{message}</small>}
        {!present && may('admin') && (
          <button type="button" onClick={() => (change.value = undoChange(slot, revision))}>
            {T.undoTo(number)}
          </button>
        )}
      </span>
    </li>
  );
}
