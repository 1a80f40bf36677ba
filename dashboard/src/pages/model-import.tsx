/** The model behind an address that the user pasted into the search. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { parseModelAddress } from '../decide/model-address.ts';
import { messageOf } from '../io/client.ts';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { T } from '../texts.ts';
import type { ModelEntry } from '../types.ts';
import { ModelRow, type ModelRowProps } from './model-row.tsx';

type RowProps = Omit<ModelRowProps, 'model' | 'children'>;

export function ModelImport({ text, ...rest }: RowProps & { readonly text: string }): JSX.Element | null {
  const address = parseModelAddress(text);
  if (address === undefined) return null;
  return (
    <section>
      <h2>{T.importTitle}</h2>
      {address.kind === 'hub' ? (
        <HubModel key={address.id} id={address.id} {...rest} />
      ) : (
        <FileImport key={address.url} url={address.url} proposed={address.name} onPull={rest.onPull} />
      )}
    </section>
  );
}

/** Typing pauses for so long before the Hub is asked. */
const PAUSE_MS = 800;

function HubModel({ id, ...rest }: RowProps & { readonly id: string }): JSX.Element {
  const { client } = useApp();
  const load = async (signal: AbortSignal): Promise<ModelEntry> => {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    signal.throwIfAborted();
    return await client.fetchJson<ModelEntry>(`/api/models/${encodeURIComponent(id)}`, { signal });
  };
  const loaded = useLoaded(load, [id]);
  if (loaded.kind !== 'done') return <LoadStatus loaded={loaded} />;
  return (
    <ul class="models">
      <ModelRow model={loaded.value} {...rest} />
    </ul>
  );
}

interface FileImportProps {
  readonly url: string;
  readonly proposed: string;
  readonly onPull: () => void;
}

/** A file from anywhere is fetched only if its hash is known. */
function FileImport({ url, proposed, onPull }: FileImportProps): JSX.Element {
  const { client } = useApp();
  const may = useMay();
  const [name, setName] = useState(proposed);
  const [sha256, setSha256] = useState('');
  const [told, setTold] = useState('');
  const [failure, setFailure] = useState('');
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setTold('');
    setFailure('');
    try {
      await client.fetchJson(`/api/models/${encodeURIComponent(name)}/pull`, { method: 'POST', body: { url, sha256 } });
      setTold(T.importBegun(name));
      onPull();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <form class="panel" onSubmit={(event) => void send(event)}>
      <p class="why">{T.importWhy}</p>
      <label>
        {T.importName}
        <input required value={name} onInput={(event) => setName(event.currentTarget.value.trim())} />
      </label>
      <label>
        SHA-256
        <input
          required
          pattern="[0-9a-fA-F]{64}"
          title={T.importHash}
          value={sha256}
          onInput={(event) => setSha256(event.currentTarget.value.trim())}
        />
      </label>
      <button type="submit" disabled={!may('admin')}>
        {T.download}
      </button>
      {told !== '' && <p role="status">{told}</p>}
      {failure !== '' && <p role="alert">{failure}</p>}
    </form>
  );
}
