/** Transcribes what is said into the microphone while it is said. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { extendTranscript, isPending, NOTHING_HEARD, type LiveTranscript } from '../decide/live-transcript.ts';
import { encodeLive } from '../decide/wav.ts';
import type { Client } from '../io/client.ts';
import { P } from '../texts-playground.ts';
import { listen } from './record.ts';
import { RunForm } from './run-form.tsx';

interface LiveProps {
  readonly slot: string;
  /** Empty: the model detects it. */
  readonly language: string;
}

export function Live(props: LiveProps): JSX.Element | null {
  const { client } = useApp();
  const [transcript, onChange] = useState(NOTHING_HEARD);
  const { isListening, utterances, failure } = transcript;
  const run = async (stop: AbortSignal): Promise<void> => await transcribeLive(client, props, stop, onChange);
  // Browsers offer the microphone only over HTTPS and on localhost; the form above says so.
  if (!window.isSecureContext || !('mediaDevices' in navigator)) return null;
  return (
    <section class="panel result" aria-label={P.live}>
      <h2>{P.live}</h2>
      <RunForm slot={props.slot} label={P.transcribeLive} isComplete isWaiting={isPending(transcript)} onRun={run} failure={failure}>
        <div aria-live="polite">
          {utterances.map(({ id, text, isFinal }) => (
            <p key={id} class={isFinal ? '' : 'why'}>
              {text}
            </p>
          ))}
        </div>
        {isListening && <p role="status">{P.listening}</p>}
      </RunForm>
    </section>
  );
}

type OnChange = (transcript: LiveTranscript) => void;

/** `stop` ends the recording; what was said is still transcribed. */
async function transcribeLive(client: Client, { slot, language }: LiveProps, stop: AbortSignal, onChange: OnChange): Promise<void> {
  let live = NOTHING_HEARD;
  const change = (next: LiveTranscript): void => {
    live = next;
    onChange(next);
    if (stop.aborted && !isPending(live)) socket.close();
  };
  const send = (event: object): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(event));
  };
  const append = (audio: string): void => send({ type: 'input_audio_buffer.append', audio });
  const hear = listen((samples, sampleRate) => append(encodeLive(samples, sampleRate)));
  const end = await hear.catch(() => Promise.reject(new Error(P.microphoneDenied)));
  if (stop.aborted) return end();
  const path = `/v1/realtime?${new URLSearchParams({ intent: 'transcription', model: slot }).toString()}`;
  const socket = client.openSocket(path);
  change(NOTHING_HEARD);
  const transcription = language === '' ? {} : { language };
  const session = { type: 'transcription', audio: { input: { transcription } } };
  socket.addEventListener('open', () => send({ type: 'session.update', session }));
  socket.addEventListener('message', ({ data }) => change(extendTranscript(live, String(data))));
  stop.addEventListener('abort', () => {
    end();
    // A second of silence in Base64: the service then transcribes what was being said.
    append('A'.repeat(64_000));
    change({ ...live, isListening: false });
  });
  await new Promise((resolve) => socket.addEventListener('close', resolve));
  end();
  if (stop.aborted) return;
  const { isListening, failure } = live;
  change({ ...live, isListening: false });
  // Browsers do not say why a WebSocket was refused; the answer to the same request does.
  if (!isListening) await client.fetch(path);
  throw new Error(failure || P.liveClosed);
}
