/** Voices that models imitate: stored with a recording, and deleted. Below the form that speaks. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { Button } from '../parts/button.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { InputField, TextAreaField } from '../parts/fields.tsx';
import { P } from '../texts-playground.ts';
import { Microphone, Player } from './microphone.tsx';
import { useRequest } from './use-request.ts';

export interface ListedVoice {
  readonly id: string;
  readonly name: string;
  /** Stored with a recording, and not the model's own. */
  readonly isStored: boolean;
}

interface VoicesProps {
  readonly voices: readonly ListedVoice[];
  /** To be called when a voice was stored or deleted. */
  readonly onChanged: () => void;
}

export function Voices({ voices, onChanged }: VoicesProps): JSX.Element | null {
  const [leaving, setLeaving] = useState<string>();
  const may = useMay();
  if (!may('admin')) return null;
  const close = (): void => setLeaving(undefined);
  return (
    <details class="panel voices">
      <summary>{P.voices}</summary>
      {voices.length === 0 ? (
        <p class="why">{P.noVoices}</p>
      ) : (
        <ul>
          {voices.map(({ id, name }) => (
            <li key={id}>
              {name}
              <Button label={P.delete} name={P.deleteVoice(name)} look="quiet" onClick={() => setLeaving(id)} />
            </li>
          ))}
        </ul>
      )}
      <NewVoice onStored={onChanged} />
      {leaving !== undefined && (
        <ConfirmDialog
          title={P.deleteVoice(leaving)}
          text={P.deleteVoiceWhy}
          action={P.delete}
          path={`/v1/audio/voices/${encodeURIComponent(leaving)}`}
          onClose={close}
          onDone={() => {
            close();
            onChanged();
          }}
        />
      )}
    </details>
  );
}

function NewVoice({ onStored }: { readonly onStored: () => void }): JSX.Element {
  const { client } = useApp();
  const [name, setName] = useState('');
  const [audio, setAudio] = useState<File>();
  const [transcript, setTranscript] = useState('');
  const [consent, setConsent] = useState('');
  const [told, setTold] = useState('');
  const request = useRequest();
  const store = async (signal: AbortSignal): Promise<void> => {
    if (audio === undefined) return;
    const form = new FormData();
    form.set('name', name);
    form.set('audio_sample', audio);
    if (transcript !== '') form.set('ref_text', transcript);
    if (consent !== '') form.set('consent', consent);
    setTold('');
    await client.fetchJson('/v1/audio/voices', { method: 'POST', body: form, signal });
    setTold(P.voiceStored(name));
    setName('');
    setAudio(undefined);
    onStored();
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    request.start(store);
  };
  return (
    <form class="ask" onSubmit={submit}>
      <h3>{P.newVoice}</h3>
      <p class="why">{P.newVoiceWhy}</p>
      <InputField label={P.voiceName} required value={name} onValue={(value) => setName(value.trim())} />
      <Microphone onAudio={setAudio} />
      <label>
        {P.audioFile}
        <input type="file" accept="audio/*" onChange={({ currentTarget: { files } }) => setAudio(files?.[0])} />
      </label>
      {audio !== undefined && <Player audio={audio} />}
      <TextAreaField label={P.voiceText} rows={2} value={transcript} onValue={setTranscript} />
      <InputField label={P.consent} value={consent} onValue={setConsent} />
      <Button label={P.storeVoice} disabled={name === '' || audio === undefined || request.running} />
      {told !== '' && <p role="status">{told}</p>}
      {request.failure !== '' && <p role="alert">{request.failure}</p>}
    </form>
  );
}
