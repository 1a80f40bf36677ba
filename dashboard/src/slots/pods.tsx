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

/** Polls. Without `slot`: all pods. Another value of `changed` reloads at once. */
function useCluster(slot: string | undefined, changed?: unknown): Loaded<Cluster> {
  const { client, now } = useApp();
  const round = useSelector(() => Math.floor(now.value / 1000 / EVERY_SECONDS));
  const ofSlot = slot === undefined ? '' : `&slot=${encodeURIComponent(slot)}`;
  return useLoaded((signal) => client.fetchJson<Cluster>(`/api/cluster?limit=${MAX_PODS}${ofSlot}`, { signal }), [slot, round, changed]);
}

export function SlotPods({ slot, changed }: { readonly slot: string; readonly changed: unknown }): JSX.Element | null {
  return useIsCluster() ? <PodsOfSlot slot={slot} changed={changed} /> : null;
}

/** The gateway replicas and the pods of all slots. */
export function ClusterPanels(): JSX.Element | null {
  return useIsCluster() ? <AllPods /> : null;
}

function useIsCluster(): boolean {
  const { store } = useApp();
  return useSelector(() => store.status.value?.runtime === 'kube');
}

function PodsOfSlot({ slot, changed }: { readonly slot: string; readonly changed: unknown }): JSX.Element {
  const loaded = useCluster(slot, changed);
  return (
    <section>
      <h3>{A.pods}</h3>
      <PodList loaded={loaded} />
    </section>
  );
}

function AllPods(): JSX.Element {
  const loaded = useCluster(undefined);
  return (
    <>
      {loaded.kind === 'done' && (
        <section class="panel gateways">
          <h2>{A.gateway}</h2>
          <FactList
            facts={[
              [A.leader, loaded.value.leader ?? T.none],
              [A.servedBy, loaded.value.replica ?? T.none],
            ]}
          />
        </section>
      )}
      <section class="panel">
        <h2>{A.pods}</h2>
        <PodList loaded={loaded} withSlots />
      </section>
    </>
  );
}

function PodList({ loaded, withSlots = false }: { readonly loaded: Loaded<Cluster>; readonly withSlots?: boolean }): JSX.Element {
  if (loaded.kind !== 'done') return <LoadStatus loaded={loaded} />;
  const { pods, pods_ready: ready, pods_total: total } = loaded.value;
  if (total === 0) return <p class="why">{A.noPods}</p>;
  return (
    <>
      <p class="why">
        {A.podsReady(ready, total)}
        {pods.length < total && ` · ${A.podsShown(pods.length)}`}
      </p>
      <ul class="conditions pods">
        {pods.map((pod) => (
          <PodLine key={pod.name} pod={pod} withSlot={withSlots} />
        ))}
      </ul>
    </>
  );
}

function PodLine({ pod, withSlot }: { readonly pod: Pod; readonly withSlot: boolean }): JSX.Element {
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
      {withSlot && pod.slot !== null && <a href={hashOf({ page: 'slots', slot: pod.slot })}>{pod.slot}</a>}
      {pod.message !== '' && <p class="pod-message">{pod.message}</p>}
      <p>{facts.join(' · ')}</p>
    </li>
  );
}
