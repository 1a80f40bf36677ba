/** Records the microphone. The browser's own formats need ffmpeg beside the model server, so the recording becomes a WAV file. */
import { encodeWave } from '../decide/wave.ts';

/** What speech models work with. */
const HERTZ = 16_000;

export interface Recording {
  /** Ends it, and resolves with what was recorded. */
  end(): Promise<File>;
}

/** Rejects if the person or the browser does not allow it. */
export async function startRecording(): Promise<Recording> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const pieces: Blob[] = [];
  recorder.addEventListener('dataavailable', ({ data }) => pieces.push(data));
  const ended = new Promise<void>((resolve) => recorder.addEventListener('stop', () => resolve(), { once: true }));
  recorder.start();
  return {
    async end() {
      if (recorder.state !== 'inactive') recorder.stop();
      await ended;
      for (const track of stream.getTracks()) track.stop();
      return toWave(new Blob(pieces));
    },
  };
}

async function toWave(sound: Blob): Promise<File> {
  // Decoding also converts to the rate of the context.
  const context = new OfflineAudioContext(1, 1, HERTZ);
  const decoded = await context.decodeAudioData(await sound.arrayBuffer());
  return new File([encodeWave(decoded.getChannelData(0), HERTZ)], 'recording.wav', { type: 'audio/wav' });
}
