/** Text to speech. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { mixVoices } from '../decide/snippets.ts';
import { at, listOf, textOf } from '../decide/untrusted.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { InputField, SelectField, TextAreaField } from '../parts/fields.tsx';
import { EXAMPLES, P } from '../texts-playground.ts';
import { T } from '../texts.ts';
import { RunForm } from './run-form.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { Voices, type ListedVoice } from './voices.tsx';

/** Every engine writes WAV; the other formats need ffmpeg on the server. */
const FORMATS = ['wav', 'mp3', 'opus', 'flac'];

export function Speak(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('speech');
  const [input, setInput] = useState<string>(EXAMPLES.speech);
  const [voice, setVoice] = useState('');
  const [second, setSecond] = useState('');
  const [share, setShare] = useState('50');
  const [speed, setSpeed] = useState('1');
  const [format, setFormat] = useState('wav');
  const [speechUrl, setSpeechUrl] = useState('');
  const [changes, setChanges] = useState(0);
  const voices = useVoices(choice.slot, changes);
  useEffect(() => () => URL.revokeObjectURL(speechUrl), [speechUrl]);
  const body = {
    model: choice.slot,
    input,
    ...(voice === '' ? {} : { voice: mixVoices(voice, second, Number(share)) }),
    response_format: format,
    ...(Number(speed) === 1 ? {} : { speed: Number(speed) }),
  };
  const run = async (signal: AbortSignal): Promise<void> => {
    const response = await client.fetch('/v1/audio/speech', { method: 'POST', body, signal });
    setSpeechUrl(URL.createObjectURL(await response.blob()));
  };
  return (
    <>
      <SlotBar choice={choice} />
      <RunForm slot={choice.slot} label={P.generateSpeech} isComplete={input.trim() !== ''} onRun={run}>
        <TextAreaField label={P.text} rows={4} value={input} onValue={setInput} />
        <div class="fields">
          <SelectField
            label={P.voice}
            value={voice}
            options={[['', P.modelDefault], ...voices.map(({ id, name }) => [id, name] as const)]}
            onValue={setVoice}
          />
          {voice !== '' && (
            <SelectField
              label={P.mixWith}
              value={second}
              options={[
                ['', P.noMix],
                ...voices.flatMap(({ id, name, isStored }) => (isStored || id === voice ? [] : [[id, name] as const])),
              ]}
              onValue={setSecond}
            />
          )}
          {voice !== '' && second !== '' && (
            <InputField label={P.mixShare} type="number" min="1" max="99" value={share} onValue={setShare} />
          )}
          <InputField label={P.speed} type="number" min="0.25" max="4" step="0.25" value={speed} onValue={setSpeed} />
          <SelectField label={P.format} value={format} options={FORMATS} onValue={setFormat} />
        </div>
      </RunForm>
      {speechUrl !== '' && <Speech url={speechUrl} format={format} />}
      <Voices voices={voices.filter(({ isStored }) => isStored)} onChanged={() => setChanges(changes + 1)} />
      <CodeSamples kind="speech" body={{ voice: 'alloy', ...body }} />
    </>
  );
}

function Speech({ url, format }: { readonly url: string; readonly format: string }): JSX.Element {
  return (
    <section class="panel result">
      <h2>{P.speech}</h2>
      <audio controls src={url} aria-label={P.speech} />
      <a href={url} download={`speech.${format}`}>
        {T.download}
      </a>
    </section>
  );
}

/** The voices of a slot, which need not be loaded. `changes`: a number that differs when they must be read again. */
function useVoices(slot: string, changes: number): readonly ListedVoice[] {
  const { client } = useApp();
  const loaded = useLoaded(
    async (signal) => {
      if (slot === '') return [];
      const answer = await client.fetchJson<unknown>(`/v1/audio/voices?model=${encodeURIComponent(slot)}`, { signal });
      const read = (entry: unknown): ListedVoice => ({
        id: textOf(at(entry, 'id')),
        name: textOf(at(entry, 'name')),
        isStored: at(entry, 'stored') === true,
      });
      return listOf(at(answer, 'voices')).map(read);
    },
    [slot, changes],
  );
  return loaded.kind === 'done' ? loaded.value : [];
}
