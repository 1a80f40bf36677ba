/**
 * The process that computes. It is separate from the server because the library ends its process for a damaged model and for some inputs;
 * the server then starts another one.
 */
import path from 'node:path';
import { nativeConfig } from './decide/native-config.ts';
import { toPcm } from './decide/write-wav.ts';
import { NO_NUMBERS, type Answer, type ListenOrder, type LoadOrder, type Order, type SpeakOrder } from './messages.ts';
import { openSharedSound, type SharedSoundReader } from './shared-sound.ts';
import { loadNative, type Native, type NativeListener, type NativeSpeaker } from './native.ts';

/** Languages of one model for text-to-speech that stay loaded. */
const LOADED_LANGUAGES = 2;
/** Samples that are sent at once. The library returns a whole sentence; the first of it is on its way to the client while the rest is converted. */
const SENT_SAMPLES = 16_384;

interface Loaded {
  readonly native: Native;
  readonly order: LoadOrder;
  readonly sound: SharedSoundReader;
  readonly listener: NativeListener | undefined;
  /** By language. A model that needs no language has one entry. */
  readonly speakers: Map<string, NativeSpeaker>;
  /** The last configuration of the listener, as text. */
  configured: string;
}

function send(answer: Answer): void {
  process.send?.(answer);
}

async function load(order: LoadOrder): Promise<Loaded> {
  const native = loadNative(order.modules);
  const loaded: Loaded = {
    native,
    order,
    sound: openSharedSound(),
    listener: await createListener(native, order),
    speakers: new Map(),
    configured: '',
  };
  if (order.engine.kind === 'speaker') await speakerFor(loaded, order.language);
  return loaded;
}

async function createListener(native: Native, order: LoadOrder): Promise<NativeListener | undefined> {
  return order.engine.kind === 'listener' ? native.OfflineRecognizer.createAsync(configOf(order, '', 'transcribe')) : undefined;
}

function configOf(order: LoadOrder, language: string, task: string): object {
  return nativeConfig(order.engine, { resolve: (name) => path.join(order.directory, name), threads: order.threads, language, task });
}

async function listen(loaded: Loaded, { samples, rate, language, task }: ListenOrder): Promise<void> {
  const { order, listener, sound } = loaded;
  if (listener === undefined) throw new Error('The model cannot listen');
  if (order.engine.kind === 'listener' && order.engine.role === 'whisper') {
    const config = configOf(order, language, task);
    const configured = JSON.stringify(config);
    if (configured !== loaded.configured) listener.setConfig(config);
    loaded.configured = configured;
  }
  const stream = listener.createStream();
  stream.acceptWaveform({ sampleRate: rate, samples: sound.read(samples) });
  const { text, lang = '', tokens = [], timestamps = [] } = await listener.decodeAsync(stream);
  send({ kind: 'heard', text, language: lang.replaceAll(/[<|>]/g, ''), tokens, timestamps });
  // The library keeps its copy of the samples until the stream is collected as garbage, and V8 knows nothing of that memory. This frees it while the server works on.
  globalThis.gc?.({ type: 'minor', execution: 'sync' });
}

async function speakerFor({ native, order, speakers }: Loaded, language: string): Promise<NativeSpeaker> {
  const options = order.engine.kind === 'speaker' ? order.engine.options : {};
  const key = options['multilingual'] === 'yes' ? language : '';
  const known = speakers.get(key);
  if (known !== undefined) return known;
  for (const oldest of [...speakers.keys()].slice(0, Math.max(0, speakers.size - LOADED_LANGUAGES + 1))) speakers.delete(oldest);
  const speaker = await native.OfflineTts.createAsync(configOf(order, key, 'transcribe'));
  speakers.set(key, speaker);
  return speaker;
}

async function speak(loaded: Loaded, order: SpeakOrder, wanted: () => boolean): Promise<void> {
  const speaker = await speakerFor(loaded, order.language);
  const resampler = order.rate === speaker.sampleRate ? undefined : new loaded.native.LinearResampler(speaker.sampleRate, order.rate);
  const pass = (samples: Float32Array): void => {
    for (let at = 0; at < samples.length; at += SENT_SAMPLES)
      send({ kind: 'samples', pcm: toPcm(samples.subarray(at, at + SENT_SAMPLES)) });
  };
  let broken = false;
  const onProgress = ({ samples }: { samples: Float32Array }): number => {
    broken ||= samples.some(Number.isNaN);
    if (wanted() && !broken) pass(resampler?.resample(samples) ?? samples);
    return wanted() && !broken ? 1 : 0;
  };
  const { text, speaker: sid, speed, sample } = order;
  const imitated =
    sample === undefined
      ? {}
      : { generationConfig: { sid, speed, referenceAudio: sample.samples, referenceSampleRate: sample.rate, referenceText: sample.text } };
  await speaker.generateAsync({ text, sid, speed, enableExternalBuffer: false, ...imitated, onProgress });
  if (broken) return send({ kind: 'failed', message: NO_NUMBERS });
  if (resampler !== undefined) pass(resampler.flush(new Float32Array(0)));
  send({ kind: 'spoken' });
}

function main(): void {
  let loaded: Loaded | undefined;
  let cancelled = false;
  const obey = async (order: Order): Promise<void> => {
    if (order.kind === 'load') {
      loaded = await load(order);
      send({ kind: 'loaded' });
    } else if (loaded === undefined) throw new Error('No model is loaded');
    else if (order.kind === 'listen') await listen(loaded, order);
    else if (order.kind === 'speak') await speak(loaded, order, () => !cancelled);
  };
  process.on('message', (order: Order) => {
    cancelled = order.kind === 'cancel';
    if (!cancelled)
      obey(order).catch((error: unknown) => send({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }));
  });
  // The server has ended.
  process.on('disconnect', () => process.exit(0));
}

main();
