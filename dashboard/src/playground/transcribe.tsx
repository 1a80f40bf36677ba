/** Speech to text, from the microphone or a file. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, textOf } from '../decide/untrusted.ts';
import { InputField } from '../parts/fields.tsx';
import { P } from '../texts-playground.ts';
import { Live } from './live.tsx';
import { Microphone, Player } from './microphone.tsx';
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
        <InputField label={P.language} value={language} placeholder={P.languageHint} onValue={(value) => setLanguage(value.trim())} />
      </RunForm>
      {transcript !== undefined && (
        <section class="panel result" aria-live="polite">
          <h2>{P.transcript}</h2>
          <p class="plain">{transcript}</p>
        </section>
      )}
      <Live slot={choice.slot} language={language} />
      <CodeSamples kind="transcription" body={fields} />
    </>
  );
}
