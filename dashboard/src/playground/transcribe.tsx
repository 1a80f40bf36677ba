/** Speech to text, from the microphone or a file. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, textOf } from '../decide/untrusted.ts';
import { P } from '../texts-playground.ts';
import { startRecording, type Recording } from './record.ts';
import { RunForm } from './run-form.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';

export function Transcribe(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('transcription');
  const [audio, setAudio] = useState<File>();
  const [language, setLanguage] = useState('');
  const [transcript, setTranscript] = useState<string>();
  const fields = { model: choice.slot, ...(language === '' ? {} : { language }) };
  const run = async (signal: AbortSignal): Promise<void> => {
    if (audio === undefined) return;
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    form.set('file', audio);
    const answer = await client.fetchJson<unknown>('/v1/audio/transcriptions', { method: 'POST', body: form, signal });
    setTranscript(textOf(at(answer, 'text')));
  };
  return (
    <>
      <SlotBar choice={choice} />
      <RunForm slot={choice.slot} label={P.transcribe} isComplete={audio !== undefined} onRun={run}>
        <Microphone onAudio={setAudio} />
        <label>
          {P.audioFile}
          <input type="file" accept="audio/*,video/webm" onChange={({ currentTarget: { files } }) => setAudio(files?.[0])} />
        </label>
        {audio !== undefined && <Player audio={audio} />}
        <label>
          {P.language}
          <input value={language} placeholder={P.languageHint} onInput={(event) => setLanguage(event.currentTarget.value.trim())} />
        </label>
      </RunForm>
      {transcript !== undefined && (
        <section class="panel result" aria-live="polite">
          <h2>{P.transcript}</h2>
          <p class="plain">{transcript}</p>
        </section>
      )}
      <CodeSamples kind="transcription" body={fields} />
    </>
  );
}

function Player({ audio }: { readonly audio: File }): JSX.Element {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(audio);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [audio]);
  return <audio controls src={url} aria-label={audio.name} />;
}

function Microphone({ onAudio }: { readonly onAudio: (audio: File) => void }): JSX.Element {
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
    if (made !== undefined) onAudio(await made.end());
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
