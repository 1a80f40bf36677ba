/** The pods of a cluster and the leading gateway. Renders nothing outside a cluster. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { formatAge, secondsSince } from '../decide/format.ts';
import { describePod } from '../decide/slot-facts.ts';
import { hashOf } from '../decide/route.ts';
import { A } from '../texts-activity.ts';
import { T } from '../texts.ts';
import type { Cluster, Pod } from '../types.ts';
import { FactList } from '../parts/fact-list.tsx';
import { LoadStatus, useLoaded, type Loaded } from '../parts/use-loaded.tsx';
import { useSelector } from '../parts/use-selector.ts';

const EVERY_SECONDS = 5;
/** The service lists unready pods first. */
const MAX_PODS = 100;

/** Polls in a cluster, long lists less often. Without `slot`: all pods. Another value of `changed` reloads at once. */
export function useCluster(slot?: string, changed?: unknown, limit = MAX_PODS): Loaded<Cluster | undefined> {
  const { client, now } = useApp();
  const isOn = useIsCluster() && limit > 0;
  const round = useSelector(() => Math.floor(now.value / 1000 / EVERY_SECONDS));
  const ofSlot = slot === undefined ? '' : `&slot=${encodeURIComponent(slot)}`;
  const load = async (signal: AbortSignal) =>
    isOn ? await client.fetchJson<Cluster>(`/api/cluster?limit=${limit}${ofSlot}`, { signal }) : undefined;
  return useLoaded(load, [slot, isOn && Math.floor(round / Math.ceil(limit / MAX_PODS)), changed]);
}

export function useIsCluster(): boolean {
  const { store } = useApp();
  return useSelector(() => store.status.value?.runtime === 'kube');
}

/** The gateway replicas and the pods of all slots. */
export function ClusterPanels(): JSX.Element | null {
  const loaded = useCluster();
  if (loaded.kind !== 'done') return <LoadStatus loaded={loaded} />;
  return loaded.value === undefined ? null : <AllPods cluster={loaded.value} />;
}

function AllPods({ cluster: { leader, replica, pods, pods_ready: ready, pods_total: total } }: { readonly cluster: Cluster }): JSX.Element {
  return (
    <>
      <section class="panel gateways">
        <h2>{A.gateway}</h2>
        <FactList
          facts={[
            [A.leader, leader ?? T.none],
            [A.servedBy, replica ?? T.none],
          ]}
        />
      </section>
      <section class="panel">
        <h2>{A.pods}</h2>
        <p class="why">
          {total === 0 ? A.noPods : A.podsReady(ready, total)}
          {pods.length < total && ` · ${A.podsShown(pods.length)}`}
        </p>
        <ul class="conditions pods">
          {pods.map((pod) => (
            <PodLine key={pod.name} pod={pod} />
          ))}
        </ul>
      </section>
    </>
  );
}

function PodLine({ pod }: { readonly pod: Pod }): JSX.Element {
  const { now } = useApp();
  const age = useSelector(() => {
    const seconds = secondsSince(pod.created_at, now.value);
    return seconds === undefined ? undefined : formatAge(seconds);
  });
  const { word, tone } = describePod(pod);
  const facts = [
    pod.node === null ? A.noNode : `${A.node} ${pod.node}`,
    ...(pod.restarts > 0 ? [A.restarts(pod.restarts)] : []),
    ...(age === undefined ? [] : [A.created(age)]),
  ];
  return (
    <li>
      <strong>{pod.name}</strong> <span class={`tag ${tone}`}>{word}</span>
      {pod.slot !== null && <a href={hashOf({ page: 'slots', slot: pod.slot })}>{pod.slot}</a>}
      {pod.message !== '' && <p class="pod-message">{pod.message}</p>}
      <p>{facts.join(' · ')}</p>
    </li>
  );
}
