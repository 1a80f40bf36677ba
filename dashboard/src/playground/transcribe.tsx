/** Speech to text, from the microphone or a file. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, textOf } from '../decide/untrusted.ts';
import { P } from '../texts-playground.ts';
import { startRecording, type Recording } from './record.ts';
import { RunButton } from './run-button.tsx';
import { SameRequest } from './same-request.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { useRequest } from './use-request.ts';

export function Transcribe(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('transcription');
  const request = useRequest();
  const [sound, setSound] = useState<File>();
  const [language, setLanguage] = useState('');
  const [heard, setHeard] = useState<string>();
  const fields = { model: choice.slot, ...(language === '' ? {} : { language }) };
  const run = (event: Event): void => {
    event.preventDefault();
    if (sound === undefined) return;
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    form.set('file', sound);
    request.start(async (signal) => {
      const answer = await client.ask<unknown>('/v1/audio/transcriptions', { method: 'POST', body: form, signal });
      setHeard(textOf(at(answer, 'text')));
    });
  };
  return (
    <>
      <SlotBar choice={choice} />
      <form class="ask" onSubmit={run}>
        <Microphone onSound={setSound} />
        <label>
          {P.audioFile}
          <input type="file" accept="audio/*,video/webm" onChange={({ currentTarget: { files } }) => setSound(files?.[0])} />
        </label>
        {sound !== undefined && <Player sound={sound} />}
        <label>
          {P.language}
          <input value={language} placeholder={P.languageHint} onInput={(event) => setLanguage(event.currentTarget.value.trim())} />
        </label>
        <RunButton request={request} label={P.transcribe} slot={choice.slot} canRun={choice.slot !== '' && sound !== undefined} />
      </form>
      {heard !== undefined && (
        <section class="panel result" aria-live="polite">
          <h2>{P.transcript}</h2>
          <p class="plain">{heard}</p>
        </section>
      )}
      <SameRequest kind="transcription" body={fields} />
    </>
  );
}

function Player({ sound }: { readonly sound: File }): JSX.Element {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(sound);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [sound]);
  return <audio controls src={url} aria-label={sound.name} />;
}

function Microphone({ onSound }: { readonly onSound: (sound: File) => void }): JSX.Element {
  const [recording, setRecording] = useState<Recording>();
  const [failure, setFailure] = useState('');
  const open = useRef<Recording>(null);
  useEffect(() => () => void open.current?.end(), []);
  // Browsers offer the microphone only over HTTPS and on localhost.
  if (!window.isSecureContext || !('mediaDevices' in navigator)) return <p class="note">{P.noMicrophone}</p>;
  const begin = (): void => {
    setFailure('');
    startRecording().then(
      (made) => {
        open.current = made;
        setRecording(made);
      },
      () => setFailure(P.microphoneDenied),
    );
  };
  const end = async (): Promise<void> => {
    const made = recording;
    setRecording(undefined);
    open.current = null;
    if (made !== undefined) onSound(await made.end());
  };
  return (
    <div class="buttons" role="group" aria-label={P.microphone}>
      {recording === undefined ? (
        <button type="button" onClick={begin}>
          {P.record}
        </button>
      ) : (
        <button type="button" class="danger" onClick={() => void end()}>
          {P.stopRecording}
        </button>
      )}
      {recording !== undefined && <span role="status">{P.recording}</span>}
      {failure !== '' && <p role="alert">{failure}</p>}
    </div>
  );
}
