/** The revisions of a slot, newest first, each with an undo; whether edits take effect; why a model was rejected. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { messageOf } from '../io/client.ts';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { isTable } from '../decide/patch.ts';
import { scoresOf } from '../decide/slot-facts.ts';
import { DataTable } from '../parts/data-table.tsx';
import { A } from '../texts-activity.ts';
import { T } from '../texts.ts';
import type { Revision, Revisions, Slot } from '../types.ts';
import { undoChange } from './slot-actions.ts';

export function HistoryTab({ name }: { readonly name: string }): JSX.Element {
  const { client, store } = useApp();
  const slot = store.of(name)?.slot.value;
  const path = `/api/slots/${encodeURIComponent(name)}/revisions`;
  const loaded = useLoaded((signal) => client.fetchJson<Revisions>(path, { signal }), [name, slot]);
  return (
    <div class="tab">
      {slot !== undefined && <Pause slot={slot} />}
      {slot !== undefined && <Verdict slot={slot} />}
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

/** While rollouts are paused, edits are kept and take no effect. */
function Pause({ slot: { name, spec, resource_version: version } }: { readonly slot: Slot }): JSX.Element | null {
  const { client } = useApp();
  const may = useMay();
  const [failure, setFailure] = useState('');
  const rollout = isTable(spec?.['rollout']) ? spec['rollout'] : {};
  const isPaused = rollout['paused'] === true;
  if (spec === null || (!isPaused && !may('admin'))) return null;
  const send = (): void => {
    setFailure('');
    // The table goes with its last key.
    const resumed = Object.keys(rollout).length > 1 ? { paused: null } : null;
    const body = { spec: { rollout: isPaused ? resumed : { paused: true } }, resource_version: version };
    client
      .fetchJson(`/api/slots/${encodeURIComponent(name)}`, { method: 'PATCH', body })
      .catch((error: unknown) => setFailure(messageOf(error)));
  };
  return (
    <div class="row">
      <p class="why">{isPaused ? T.rolloutsPaused : T.rolloutsRun}</p>
      {may('admin') && (
        <button type="button" onClick={send}>
          {isPaused ? T.resumeRollouts : T.pauseRollouts}
        </button>
      )}
      {failure !== '' && <p role="alert">{failure}</p>}
    </div>
  );
}

/** Why the model of the last edit gets no requests, and which cases it has failed. */
function Verdict({ slot }: { readonly slot: Slot }): JSX.Element | null {
  const { rollout } = slot.status;
  if (rollout === null) return null;
  return (
    <section class="verdict" aria-label={A.verdict}>
      <h3>{A.verdict}</h3>
      <p class="alarm">{rollout.because}</p>
      {scoresOf(slot).map(({ model, passed, cases, needed }) => (
        <div key={model}>
          {A.score[model](passed, cases, Math.round(needed * 100))}
          <div class="lane" aria-hidden="true" style={{ '--budget': `${needed * 100}%` }}>
            <span class="bar" style={{ width: `${(passed / Math.max(1, cases)) * 100}%` }} />
          </div>
        </div>
      ))}
      {rollout.misses.length > 0 && (
        <DataTable label={A.failedCases} titles={A.caseTitles}>
          {rollout.misses.map(({ case: number, required, question, expectation, answer }) => (
            <tr key={number}>
              <th scope="row">{required ? A.requiredCase(number) : number}</th>
              <td>{question}</td>
              <td>{expectation}</td>
              <td>{answer}</td>
            </tr>
          ))}
        </DataTable>
      )}
    </section>
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
        {message !== null && <small>{message}</small>}{' '}
        {!present && may('admin') && (
          <button type="button" onClick={() => (change.value = undoChange(slot, revision))}>
            {T.undoTo(number)}
          </button>
        )}
      </span>
    </li>
  );
}
