/** The tree of a slot with the findings behind its state, and the memory it competes for. */
import type { JSX } from 'preact';
import { useApp } from '../app-context.ts';
import { AdmissionChart } from '../pages/admission-chart.tsx';
import type { Explanation } from '../types.ts';
import { SlotTree } from './slot-tree.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';

export function ExplainTab({ name }: { readonly name: string }): JSX.Element {
  const { client, store } = useApp();
  const { slot: { value: slot } = {}, line, lastEvent } = store.of(name) ?? {};
  const loaded = useLoaded(
    (signal) => client.fetchJson<Explanation>(`/api/slots/${encodeURIComponent(name)}/explain`, { signal }),
    [name, slot, line?.value, lastEvent?.value],
  );
  return (
    <div class="tab">
      <LoadStatus loaded={loaded} />
      {loaded.kind === 'done' && (
        <>
          {slot !== undefined && <SlotTree slot={slot} explanation={loaded.value} parked={line?.value.parked ?? 0} />}
          <pre tabIndex={0}>{loaded.value.text}</pre>
          {loaded.value.memory !== null && <AdmissionChart memory={loaded.value.memory} />}
        </>
      )}
    </div>
  );
}
