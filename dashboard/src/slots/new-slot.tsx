/** Declares a slot: what it is for, its model and its name. The plan of it is shown next. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatBytes } from '../decide/format.ts';
import { freeName, modelsFor, PURPOSES, USUAL_PROVIDER, type Purpose } from '../decide/model-facts.ts';
import { NameField, SelectField } from '../parts/fields.tsx';
import { DialogFooter, Modal } from '../parts/modal.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { N } from '../texts-new-slot.ts';
import { T } from '../texts.ts';
import type { ModelEntry, Models } from '../types.ts';
import { createChange } from './slot-actions.ts';

export function NewSlot(): JSX.Element {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        {N.open}
      </button>
      {isOpen && <NewSlotDialog onClose={() => setIsOpen(false)} />}
    </>
  );
}

export function NewSlotDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const { client, change, store } = useApp();
  const [purpose, setPurpose] = useState<Purpose>('chat');
  const [model, setModel] = useState('');
  const [typed, setTyped] = useState<string>();
  const models = useLoaded((signal) => client.fetchJson<Models>('/api/models', { signal }), []);
  const fitting = models.kind === 'done' ? modelsFor(purpose, models.value.models) : [];
  const name = typed ?? freeName(purpose, store.names.value ?? []);
  const isTaken = (store.names.value ?? []).includes(name.trim());
  const plan = (event: Event): void => {
    event.preventDefault();
    onClose();
    const provider = fitting.find(({ id }) => id === model.trim())?.provider ?? USUAL_PROVIDER[purpose];
    change.value = createChange(name.trim(), model.trim(), provider);
  };
  return (
    <Modal kind="dialog" title={N.title} onClose={onClose}>
      <form onSubmit={plan}>
        <SelectField
          label={N.purpose}
          value={purpose}
          options={PURPOSES.map((each) => [each, N.purposes[each]] as const)}
          onValue={(value) => {
            setPurpose(PURPOSES.find((each) => each === value) ?? purpose);
            setModel('');
          }}
        />
        <NameField
          id="new-slot-model"
          label={N.model}
          hint={N.modelHint}
          value={model}
          list={fitting.map((entry) => [entry.id, describe(entry)] as const)}
          onValue={setModel}
        />
        <NameField id="new-slot-name" label={N.name} hint={N.nameHint} value={name} onValue={setTyped} />
        {isTaken && <p role="alert">{T.slotExists}</p>}
        <LoadStatus loaded={models} />
        <DialogFooter onClose={onClose} action={N.plan} disabled={isTaken} />
      </form>
    </Modal>
  );
}

function describe({ present, size_bytes: size }: ModelEntry): string {
  const place = present ? N.isHere : N.isNotHere;
  return size === null ? place : `${formatBytes(size)}, ${place}`;
}
