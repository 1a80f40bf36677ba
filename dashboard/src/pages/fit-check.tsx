/** Whether a model fits in memory, and its maximum context, as computed by the service. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { T } from '../texts.ts';
import type { FitAnswer, ModelEntry } from '../types.ts';
import { useLoaded } from '../parts/use-loaded.tsx';

interface FitCheckProps {
  readonly model: ModelEntry;
  /** Called with the memory needed, in bytes, once known. */
  readonly onNeeded: (bytes: number) => void;
}

/** Downloaded models are checked at once; others on request, because their header must be fetched. */
export function FitCheck({ model, onNeeded }: FitCheckProps): JSX.Element {
  const [isRequested, setRequested] = useState(model.present);
  if (isRequested) return <Fit id={model.id} onNeeded={onNeeded} />;
  return (
    <p>
      <button type="button" class="quiet fit-button" onClick={() => setRequested(true)}>
        {T.checkFit}
      </button>
    </p>
  );
}

function Fit({ id, onNeeded }: Pick<FitCheckProps, 'onNeeded'> & { readonly id: string }): JSX.Element {
  const { client } = useApp();
  const loaded = useLoaded((signal) => client.fetchJson<FitAnswer>(`/api/fit?model=${encodeURIComponent(id)}`, { signal }), [id]);
  const computed = loaded.kind === 'done' ? loaded.value.needed_bytes : undefined;
  useEffect(() => {
    if (computed !== undefined) onNeeded(computed);
  }, [computed]);
  if (loaded.kind === 'loading') return <p class="why">{T.checkingFit}</p>;
  if (loaded.kind === 'failed')
    return (
      <p class="why" role="status">
        {loaded.message}
      </p>
    );
  const { needed_bytes: needed, room_bytes: room, fits, fits_now: fitsNow, largest_context: context, message } = loaded.value;
  return (
    <div class="fit" role="status">
      {room !== null && (
        <meter aria-label={`${T.memory}: ${id}`} min={0} max={Math.max(room, needed)} high={room * 0.9} value={needed}>
          {formatBytes(needed)}
        </meter>
      )}
      <small>
        <strong class={fits ? '' : 'short'}>{fits ? (fitsNow ? T.fitsNow : T.fitsLater) : T.tooLarge}</strong>{' '}
        {room !== null && `${T.memoryOf(formatBytes(needed), formatBytes(room))} `}
        {context !== null && `${T.maximumContext(context.toLocaleString('en'))} `}
        {!fitsNow && message}
      </small>
    </div>
  );
}
