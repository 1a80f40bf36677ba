/** The Models page: downloaded models, and those available to download. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { matchesModel, slotsFor, splitModels } from '../decide/model-facts.ts';
import { allSlots } from '../io/store.ts';
import { parseModelAddress } from '../decide/model-address.ts';
import { HubSearch } from './hub-search.tsx';
import { ModelImport } from './model-import.tsx';
import { ModelRow } from './model-row.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { SearchField } from '../parts/fields.tsx';
import { PAGE_NAMES, T } from '../texts.ts';
import type { Hardware, ModelEntry, Models, Pull, Pulls } from '../types.ts';

const PULLS_MS = 1500;

export function ModelsPage(): JSX.Element {
  const { client, place, store } = useApp();
  const [search, setSearch] = useState('');
  const { pulls, reload, round } = usePulls();
  const models = useLoaded((signal) => client.fetchJson<Models>('/api/models', { signal }), [round]);
  const hardware = useLoaded((signal) => client.fetchJson<Hardware>('/api/hardware', { signal }), []);
  const machine = hardware.kind === 'done' ? hardware.value : undefined;
  const target = place.value.slot;
  const suits = (model: ModelEntry): boolean => target === undefined || slotsFor(model, allSlots(store)).includes(target);
  const found = models.kind === 'done' ? models.value.models.filter((model) => matchesModel(model, search) && suits(model)) : [];
  const { here, others } = splitModels(found);
  const list = (title: string, entries: readonly ModelEntry[]): JSX.Element | null =>
    entries.length === 0 ? null : (
      <section>
        <h2>{title}</h2>
        <ul class="models">
          {entries.map((model) => (
            <ModelRow key={model.id} model={model} machine={machine} pulls={pulls} target={target} onPull={reload} />
          ))}
        </ul>
      </section>
    );
  return (
    <>
      <div class="page-head">
        <h1>{target === undefined ? PAGE_NAMES.models : `${T.changeModel}: ${target}`}</h1>
        {typeof machine?.memory_available_bytes === 'number' && <p>{T.memoryAvailable(formatBytes(machine.memory_available_bytes))}</p>}
        <SearchField label={T.modelSearch} value={search} onValue={setSearch} />
      </div>
      <LoadStatus loaded={models} />
      <ModelImport text={search} machine={machine} pulls={pulls} target={target} onPull={reload} />
      {models.kind === 'done' && found.length === 0 && parseModelAddress(search) === undefined && <p>{T.noModels}</p>}
      {list(T.modelsHere, here)}
      {list(T.modelsCatalogue, others)}
      <HubSearch text={search} machine={machine} pulls={pulls} target={target} onPull={reload} />
    </>
  );
}

/** Polls the downloads. `round` changes when one has ended, and the models must be reloaded. */
function usePulls(): { readonly pulls: readonly Pull[]; readonly reload: () => void; readonly round: string } {
  const { client } = useApp();
  const [pulls, setPulls] = useState<readonly Pull[]>([]);
  const [reloads, setReloads] = useState(0);
  const running = pulls.filter(({ failed }) => !failed).length;
  useEffect(() => {
    const leave = new AbortController();
    const read = (): void => {
      client.fetchJson<Pulls>('/api/pulls', { signal: leave.signal }).then(
        (answer) => setPulls(answer.pulls),
        () => undefined,
      );
    };
    read();
    const timer = setInterval(read, PULLS_MS);
    return () => {
      leave.abort();
      clearInterval(timer);
    };
  }, [reloads]);
  return { pulls, reload: () => setReloads(reloads + 1), round: `${running} ${reloads}` };
}
