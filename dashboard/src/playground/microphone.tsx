/** Records from the microphone, and plays what was recorded or chosen. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../parts/button.tsx';
import { P } from '../texts-playground.ts';
import { startRecording, type Recording } from './record.ts';

export function Player({ audio }: { readonly audio: File }): JSX.Element {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(audio);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [audio]);
  return <audio controls src={url} aria-label={audio.name} />;
}

export function Microphone({ onAudio }: { readonly onAudio: (audio: File) => void }): JSX.Element {
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
        <Button label={P.record} onClick={begin} />
      ) : (
        <Button label={P.stopRecording} look="danger" onClick={() => void end()} />
      )}
      {recording !== undefined && <span role="status">{P.recording}</span>}
      {failure !== '' && <p role="alert">{failure}</p>}
    </div>
  );
}
