/** A slot from its declaration to its devices, as nested lists. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { treeOf, type TreeInput, type TreeRow } from '../decide/slot-tree.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { A, TREE_FACTS } from '../texts-activity.ts';
import type { Revisions } from '../types.ts';
import { useCluster, useIsCluster } from './pods.tsx';

export function SlotTree({ slot, ...known }: Pick<TreeInput, 'slot' | 'explanation' | 'parked'>): JSX.Element {
  const { client, now } = useApp();
  const path = `/api/slots/${encodeURIComponent(slot.name)}/revisions`;
  const revisions = useLoaded((signal) => client.fetchJson<Revisions>(path, { signal }), [slot]);
  const isCluster = useIsCluster();
  const cluster = useCluster(slot.name, slot);
  const pods = (cluster.kind === 'done' && cluster.value?.pods) || [];
  const kept = revisions.kind === 'done' ? revisions.value.revisions : [];
  return (
    <ul class="tree" aria-label={A.tree}>
      <Row row={treeOf({ ...known, slot, pods, isCluster, revisions: kept, now: now.peek() })} />
    </ul>
  );
}

function Row({ row: { kind, name, state, facts, findings, rows } }: { readonly row: TreeRow }): JSX.Element {
  const told = Object.entries(facts).flatMap(([fact, value]) => (value ? `${TREE_FACTS[fact] ?? fact} ${value}` : []));
  return (
    <li>
      <small>{kind}</small> <strong>{name}</strong> {state !== '' && <span class={findings.length > 0 ? 'tag bad' : 'tag'}>{state}</span>}{' '}
      <small>{told.join(' · ')}</small>
      {findings.map(({ types, reason, message }) => (
        <p key={`${reason} ${message}`} class="why">
          <strong>{reason}</strong> {types.length > 0 && `(${types.map(({ type, status }) => `${type} ${status}`).join(', ')})`} {message}
        </p>
      ))}
      {rows.length > 0 && (
        <ul>
          {rows.map((each) => (
            <Row key={`${each.kind} ${each.name}`} row={each} />
          ))}
        </ul>
      )}
    </li>
  );
}
