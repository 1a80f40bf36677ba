/** Saves the slots as a profile, and asks before replacing one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { ApiError, messageOf } from '../io/client.ts';
import { T } from '../texts.ts';
import { P } from '../texts-profiles.ts';
import { Modal } from '../parts/modal.tsx';

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
        <label>
          {P.name}
          <input
            required
            value={name}
            maxLength={40}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            aria-describedby="profile-name-hint"
            onInput={(event) => {
              setName(event.currentTarget.value);
              setFailure(undefined);
            }}
          />
          <small id="profile-name-hint">{P.nameHint}</small>
        </label>
        {failure !== undefined && <p role="alert">{exists ? P.exists : messageOf(failure)}</p>}
        <footer>
          <button type="button" onClick={onClose}>
            {T.cancel}
          </button>
          <button type="submit" class={exists ? 'danger' : 'main'}>
            {exists ? P.replace : P.saveAction}
          </button>
        </footer>
      </form>
    </Modal>
  );
}
