/** A model with its size, memory, licence and actions. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { fitOf, freeName, neededBytes, pullOf, purposeOf, slotsFor } from '../decide/model-facts.ts';
import { safeLink } from '../decide/untrusted.ts';
import { ApiError, messageOf, type Client } from '../io/client.ts';
import type { Table } from '../decide/patch.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { N } from '../texts-new-slot.ts';
import { T } from '../texts.ts';
import type { Hardware, ModelEntry, Pull } from '../types.ts';
import { DownloadBar } from '../parts/download-bar.tsx';
import { FitCheck } from './fit-check.tsx';
import { createChange, loadChange } from '../slots/slot-actions.ts';
import { allSlots } from '../io/store.ts';

export interface ModelRowProps {
  readonly model: ModelEntry;
  readonly machine: Hardware | undefined;
  readonly pulls: readonly Pull[];
  /** The slot to load the model into, if the user came from its card. */
  readonly target: string | undefined;
  readonly onPull: () => void;
  readonly children?: ComponentChildren;
}

export function ModelRow({ model, machine, pulls, target, onPull, children }: ModelRowProps): JSX.Element {
  // The list has estimates for downloaded files only; for others the user requests one.
  const [computed, setComputed] = useState<number>();
  const needed = neededBytes(model, computed);
  const fit = fitOf(needed, machine?.memory_available_bytes ?? null, machine?.memory_total_bytes ?? null);
  const pull = pullOf(model, pulls);
  return (
    <li class="model-row">
      <div>
        <h3>{model.id}</h3>
        <p class="tags">
          {[model.kind ?? model.provider, model.family, model.quantization].map(
            (text) =>
              text !== null &&
              text !== '' && (
                <span key={text} class="tag">
                  {text}
                </span>
              ),
          )}
          <Licence model={model} />
        </p>
        {children}
        {model.reason !== null && model.reason !== '' && <p class="why">{model.reason}</p>}
        {model.selectable && <FitCheck model={model} onNeeded={setComputed} />}
        {pull !== undefined && !pull.failed && <DownloadBar progress={pull} />}
        {pull?.failed === true && (
          <p class="why" role="alert">
            {T.downloadFailed}: {pull.message}
          </p>
        )}
      </div>
      <dl class="facts">
        <Fact name={T.size} value={model.size_bytes === null ? T.unknown : formatBytes(model.size_bytes)} />
        <Fact name={T.memory} value={needed === null ? T.unknown : formatBytes(needed)} kind={fit} />
        <Fact name={T.context} value={model.context === null ? T.none : model.context.toLocaleString('en')} />
      </dl>
      <ModelButtons model={model} pull={pull} target={target} onPull={onPull} />
    </li>
  );
}

function Fact({ name, value, kind }: { readonly name: string; readonly value: string; readonly kind?: string }): JSX.Element {
  return (
    <div class={kind}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Licence({ model: { license, license_url: url } }: { readonly model: ModelEntry }): JSX.Element | null {
  if (license === null) return null;
  const href = safeLink(url ?? '');
  if (href === undefined) return <span class="tag">{license}</span>;
  return (
    <a class="tag" href={href} target="_blank" rel="noreferrer noopener">
      {T.licence}: {license}
    </a>
  );
}

interface LoadIntoProps {
  readonly model: ModelEntry;
  readonly slots: readonly string[];
  readonly onLoad: (slot: string) => void;
}

function LoadInto({ model, slots, onLoad }: LoadIntoProps): JSX.Element | null {
  const [chosen, setChosen] = useState('');
  const slot = slots.includes(chosen) ? chosen : slots[0];
  if (slot === undefined) return null;
  return (
    <div class="load-into">
      <button type="button" class={slots.length === 1 ? 'main' : ''} onClick={() => onLoad(slot)}>
        {slots.length === 1 ? `${T.loadInto} ${slot}` : T.loadInto}
      </button>
      {slots.length > 1 && (
        <select aria-label={`${T.slotFor} ${model.id}`} value={slot} onChange={(event) => setChosen(event.currentTarget.value)}>
          {slots.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
    </div>
  );
}

interface DeleteModelProps {
  readonly id: string;
  readonly path: string;
  readonly onDone: () => void;
}

function DeleteModel({ id, path, onDone }: DeleteModelProps): JSX.Element {
  const [asks, setAsks] = useState(false);
  const close = (): void => setAsks(false);
  const done = (): void => {
    close();
    onDone();
  };
  return (
    <>
      <button type="button" onClick={() => setAsks(true)}>
        {N.deleteModel}
      </button>
      {asks && (
        <ConfirmDialog
          title={N.deleteModelTitle(id)}
          text={N.deleteModelWhy}
          action={N.deleteAction}
          path={path}
          onClose={close}
          onDone={done}
        />
      )}
    </>
  );
}

type ModelButtonsProps = Pick<ModelRowProps, 'model' | 'target' | 'onPull'> & { readonly pull: Pull | undefined };

function ModelButtons({ model, pull, target, onPull }: ModelButtonsProps): JSX.Element | null {
  const { client, store, change } = useApp();
  const may = useMay();
  const [failure, setFailure] = useState('');
  const [asksLicence, setAsksLicence] = useState(false);
  const path = `/api/models/${encodeURIComponent(model.id)}`;
  const send = (method: 'POST' | 'DELETE', to: string, body?: Table): void => {
    setFailure('');
    setAsksLicence(false);
    client.fetchJson(to, { method, body }).then(onPull, (error: unknown) => {
      setFailure(messageOf(error));
      setAsksLicence(body === undefined && isLicenceRefusal(error, model));
    });
  };
  const purpose = purposeOf(model);
  const declare = (name: string): void => void (change.value = createChange(name, model.id, model.provider));
  const fitting = target === undefined ? slotsFor(model, allSlots(store)) : [target];
  const pulling = pull !== undefined && !pull.failed;
  if (!may('admin')) return null;
  return (
    <div class="buttons" role="group" aria-label={`${T.actions}: ${model.id}`}>
      {!model.present && !pulling && (
        <button type="button" disabled={!model.selectable} onClick={() => send('POST', `${path}/pull`)}>
          {pull === undefined ? T.download : T.resumeDownload}
        </button>
      )}
      {pulling && (
        <button type="button" onClick={() => send('DELETE', path)}>
          {T.cancel}
        </button>
      )}
      {model.present && <DeleteModel id={model.id} path={path} onDone={onPull} />}
      {model.selectable && <LoadInto model={model} slots={fitting} onLoad={(slot) => (change.value = loadChange(slot, model.id))} />}
      {model.selectable && target === undefined && purpose !== undefined && (
        <button type="button" onClick={() => declare(freeName(purpose, store.names.peek() ?? []))}>
          {N.open}
        </button>
      )}
      {failure !== '' && <p role="alert">{failure}</p>}
      {asksLicence && (
        <p>
          <Licence model={model} />{' '}
          <button type="button" onClick={() => send('POST', `${path}/pull`, { accept_license: true })}>
            {T.acceptLicence}
          </button>
        </p>
      )}
    </div>
  );
}

/** Frees every slot whose model has this licence, and downloads the model. */
export const acceptLicence = async (client: Client, model: string): Promise<unknown> =>
  await client.fetchJson(`/api/models/${encodeURIComponent(model)}/pull`, { method: 'POST', body: { accept_license: true } });

/** Restricted licences must be accepted before the download. */
function isLicenceRefusal(error: unknown, { license }: ModelEntry): boolean {
  return license !== null && error instanceof ApiError && error.code === 'model.unavailable' && error.message.includes('licence');
}
