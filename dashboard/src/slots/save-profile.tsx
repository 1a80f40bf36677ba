/** Saves the slots as a profile, and asks before replacing one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { ApiError, messageOf } from '../io/client.ts';
import { P } from '../texts-profiles.ts';
import { NameField } from '../parts/fields.tsx';
import { DialogFooter, Modal } from '../parts/modal.tsx';

interface SaveProfileProps {
  readonly slots: readonly string[];
  readonly onClose: () => void;
  readonly onSaved: (name: string) => void;
}

export function SaveProfile({ slots, onClose, onSaved }: SaveProfileProps): JSX.Element {
  const { client } = useApp();
  const [name, setName] = useState('');
  const [failure, setFailure] = useState<unknown>(undefined);
  const exists = failure instanceof ApiError && failure.code === 'profile.conflict';
  const save = (event: Event): void => {
    event.preventDefault();
    const path = `/api/profiles/${encodeURIComponent(name)}`;
    const saved = client.fetchJson(path, exists ? { method: 'PUT', body: {} } : { method: 'PUT', body: {}, ifNoneMatch: '*' });
    saved.then(() => onSaved(name), setFailure);
  };
  return (
    <Modal kind="dialog" title={P.saveTitle} onClose={onClose}>
      <form onSubmit={save}>
        <p>{P.saveWhy}</p>
        <p class="why">{slots.toSorted().join(', ')}</p>
        <NameField
          id="profile-name"
          label={P.name}
          hint={P.nameHint}
          value={name}
          maxLength={40}
          onValue={(value) => {
            setName(value);
            setFailure(undefined);
          }}
        />
        {failure !== undefined && <p role="alert">{exists ? P.exists : messageOf(failure)}</p>}
        <DialogFooter onClose={onClose} action={exists ? P.replace : P.saveAction} kind={exists ? 'danger' : 'main'} />
      </form>
    </Modal>
  );
}
