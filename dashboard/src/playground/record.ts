/** Records the microphone as WAV, because the browser's own formats need ffmpeg on the server, or live as samples. */
import { encodeWav } from '../decide/wav.ts';
import processorUrl from './live-processor.ts?worker&url';

/** Sample rate of speech models. */
const SAMPLE_RATE = 16_000;

export interface Recording {
  /** Stops, and resolves with the recording. */
  end(): Promise<File>;
}

/** Rejects if access to the microphone is denied. */
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
  // Decoding resamples to the rate of the context.
  const context = new OfflineAudioContext(1, 1, SAMPLE_RATE);
  const decoded = await context.decodeAudioData(await sound.arrayBuffer());
  return new File([encodeWav(decoded.getChannelData(0), SAMPLE_RATE)], 'recording.wav', { type: 'audio/wav' });
}

/** Resolves with a function that ends it. Rejects if access to the microphone is denied. */
export async function listen(onSamples: (samples: Float32Array, sampleRate: number) => void): Promise<() => void> {
  const context = new AudioContext();
  await context.audioWorklet.addModule(processorUrl);
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const node = new AudioWorkletNode(context, 'live');
  node.port.onmessage = ({ data }) => onSamples(data, context.sampleRate);
  // A node that leads nowhere is not run. This one is silent.
  context.createMediaStreamSource(stream).connect(node).connect(context.destination);
  return () => {
    // What was recorded until then may still arrive: behind the end of an utterance, it would begin another one.
    node.port.onmessage = null;
    for (const track of stream.getTracks()) track.stop();
    if (context.state !== 'closed') void context.close();
  };
}
