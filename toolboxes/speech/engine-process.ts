/**
 * The process that computes. It is separate from the server because the library ends its process for a damaged model and for some inputs;
 * the server then starts another one.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import path from 'node:path';
import { mixVoices, type MixPart } from './decide/mix-voices.ts';
import { nativeConfig } from './decide/native-config.ts';
import { toPcm } from './decide/write-wav.ts';
import { NO_NUMBERS, type Answer, type ListenOrder, type LoadOrder, type Order, type SpeakOrder } from './messages.ts';
import { openSharedSound, type SharedSoundReader } from './shared-sound.ts';
import { loadNative, type Native, type NativeListener, type NativeSpeaker } from './native.ts';

/** Languages and mixes of voices of one model for text-to-speech that stay loaded. */
const LOADED_SPEAKERS = 2;
/** Samples that are sent at once. The library returns a whole sentence; the first of it is on its way to the client while the rest is converted. */
const SENT_SAMPLES = 16_384;

interface Loaded {
  readonly native: Native;
  readonly order: LoadOrder;
  readonly sound: SharedSoundReader;
  readonly listener: NativeListener | undefined;
  /** By language and mix. A model that needs no language has one entry without a mix. */
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
  if (order.engine.kind === 'speaker') await speakerFor(loaded, order);
  return loaded;
}

async function createListener(native: Native, order: LoadOrder): Promise<NativeListener | undefined> {
  return order.engine.kind === 'listener' ? native.OfflineRecognizer.createAsync(configOf(order, '', 'transcribe')) : undefined;
}

function configOf(order: LoadOrder, language: string, task: string, engine = order.engine): object {
  return nativeConfig(engine, { resolve: (name) => path.resolve(order.directory, name), threads: order.threads, language, task });
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

async function speakerFor(
  { native, order, speakers }: Loaded,
  { language, mix = [] }: Pick<SpeakOrder, 'language' | 'mix'>,
): Promise<NativeSpeaker> {
  const options = order.engine.kind === 'speaker' ? order.engine.options : {};
  const spoken = options['multilingual'] === 'yes' ? language : '';
  const key = JSON.stringify([spoken, mix]);
  const known = speakers.get(key);
  if (known !== undefined) return known;
  for (const oldest of [...speakers.keys()].slice(0, Math.max(0, speakers.size - LOADED_SPEAKERS + 1))) speakers.delete(oldest);
  const speaker = mix.length === 0 ? await createSpeaker(native, order, spoken) : await createMixed(native, order, { spoken, mix });
  speakers.set(key, speaker);
  return speaker;
}

const createSpeaker = async (native: Native, order: LoadOrder, spoken: string, engine = order.engine): Promise<NativeSpeaker> =>
  native.OfflineTts.createAsync(configOf(order, spoken, 'transcribe', engine));

/** The library reads voices from a file, and only when it loads a model. */
async function createMixed(
  native: Native,
  order: LoadOrder,
  { spoken, mix }: { spoken: string; mix: readonly MixPart[] },
): Promise<NativeSpeaker> {
  const { engine, directory, voices, scratch } = order;
  if (engine.kind !== 'speaker') throw new Error('The model has no voices');
  const file = path.join(scratch, 'mixed-voices.bin');
  await writeFile(file, mixVoices(await readFile(path.join(directory, engine.files['voices'] ?? '')), voices, mix));
  try {
    return await createSpeaker(native, order, spoken, { ...engine, files: { ...engine.files, voices: file } });
  } finally {
    await rm(file, { force: true });
  }
}

async function speak(loaded: Loaded, order: SpeakOrder, wanted: () => boolean): Promise<void> {
  const speaker = await speakerFor(loaded, order);
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
      // It may end by force.
      flushCompileCache();
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
