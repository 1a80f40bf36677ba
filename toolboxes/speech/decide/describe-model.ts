/** What a model can do, and how the engine is told to load it, from its files and their metadata. Pure. */
import type { Bundle, Family } from './find-bundle.ts';
import type { Voice } from './choose-voice.ts';
import type { GgmlWhisper } from './read-ggml.ts';
import { WHISPER_LANGUAGES } from './whisper-languages.ts';
import type { Granularity } from './format-transcript.ts';

export interface ModelFacts {
  readonly family: Family;
  /** Hertz; for text-to-speech, that of its sound. */
  readonly sampleRate: number;
  readonly languages: readonly string[];
  readonly translation: boolean;
  readonly timestamps: readonly Granularity[];
  readonly voices: readonly Voice[];
  /** It has no voices of its own, and imitates the one of a recording instead. */
  readonly clones: boolean;
  /** Its voices are numbers that can be mixed. */
  readonly mixes?: boolean;
  /** Seconds that the model processes at once. */
  readonly mostSeconds: number;
  /** The library returns an empty text, and no error, when the model fails. */
  readonly failsSilently?: boolean;
  /** The configuration of the library. File names are relative to the directory of the model. */
  readonly engine: EngineConfig;
}

export type EngineConfig =
  | { readonly kind: 'whisper' }
  | { readonly kind: 'listener'; readonly role: string; readonly files: Files; readonly options: Files; readonly modelType: string }
  | { readonly kind: 'speaker'; readonly role: string; readonly files: Files; readonly options: Files; readonly rules: readonly string[] };

type Files = Readonly<Record<string, string>>;
type Metadata = Readonly<Record<string, string>>;
export type Described = { readonly ok: true; readonly facts: ModelFacts } | { readonly ok: false; readonly why: string };

export interface BundleFacts {
  readonly bundle: Bundle;
  /** The name of the directory, which often contains the language. */
  readonly name: string;
  /** By role. */
  readonly metadata: Readonly<Record<string, Metadata>>;
  /** Bytes, by role. */
  readonly sizes: Readonly<Record<string, number>>;
}

const FLOAT_BYTES = 4;
const LISTENER_RATE = 16_000;
const POCKET_RATE = 24_000;

export function describeModel(facts: BundleFacts): Described {
  switch (facts.bundle.family) {
    case 'moonshine':
      return describeMoonshine(facts);
    case 'whisper':
      return describeWhisper(facts);
    case 'transducer':
      return listener(facts, { role: 'transducer', timestamps: ['segment', 'word'], mostSeconds: 60, modelType: transducerType(facts) });
    case 'ctc':
      return describeCtc(facts);
    case 'kokoro':
      return describeKokoro(facts);
    case 'vits':
      return describeVits(facts);
    case 'matcha':
      return speaker(facts, 'matcha', facts.metadata['acousticModel'] ?? {});
    case 'pocket':
      return describePocket(facts);
  }
}

/**
 * sherpa-onnx 1.13.8 returns an empty text for more than 384 encoded frames, 9.2 seconds, of the second layout, whose decoders are merged
 * (https://github.com/k2-fsa/sherpa-onnx/issues/3975, read in November 2026).
 */
function describeMoonshine(facts: BundleFacts): Described {
  const merged = facts.bundle.graphs['mergedDecoder'] !== undefined;
  const languages = [languageOf(facts.name)];
  return listener(facts, { role: 'moonshine', languages, mostSeconds: merged ? 8 : 28, failsSilently: merged });
}

/** A Whisper that whisper.cpp's server loads. It hears 30 seconds at once. */
export function describeWhisperFile({ multilingual, translates }: GgmlWhisper): ModelFacts {
  return {
    family: 'whisper',
    sampleRate: LISTENER_RATE,
    languages: multilingual ? WHISPER_LANGUAGES : ['en'],
    translation: translates,
    timestamps: ['segment', 'word'],
    voices: [],
    clones: false,
    mostSeconds: 28,
    engine: { kind: 'whisper' },
  };
}

interface ListenerOptions {
  readonly role: string;
  readonly languages?: readonly string[];
  readonly translation?: boolean;
  readonly timestamps?: readonly Granularity[];
  readonly mostSeconds: number;
  readonly failsSilently?: boolean;
  readonly modelType?: string;
}

function listener({ bundle }: BundleFacts, options: ListenerOptions): Described {
  const {
    role,
    languages = [],
    translation = false,
    timestamps = ['segment'],
    mostSeconds,
    failsSilently = false,
    modelType = '',
  } = options;
  const { tokens = '', ...files } = { ...bundle.graphs, ...bundle.files };
  const engine = { kind: 'listener', role, files, options: { tokens }, modelType } as const;
  const facts = {
    family: bundle.family,
    sampleRate: LISTENER_RATE,
    languages,
    translation,
    timestamps,
    voices: [],
    clones: false,
    mostSeconds,
    failsSilently,
    engine,
  };
  return { ok: true, facts };
}

/** Models for other languages than English have the language in their name. */
const languageOf = (name: string): string => /[-_](ar|de|es|fr|ja|ko|uk|vi|zh)(?:[-_]|$)/.exec(name)?.[1] ?? 'en';

function describeWhisper(facts: BundleFacts): Described {
  const metadata = facts.metadata['encoder'] ?? {};
  const multilingual = metadata['is_multilingual'] === '1';
  const codes = (metadata['all_language_codes'] ?? '').split(',').filter((code) => code !== '');
  const languages = multilingual ? codes : ['en'];
  // The model hears 30 seconds at once; the engine cuts off the rest.
  return listener(facts, { role: 'whisper', languages, translation: multilingual, mostSeconds: 28 });
}

const transducerType = ({ metadata }: BundleFacts): string =>
  (metadata['encoder']?.['model_type'] ?? '').startsWith('EncDec') ? 'nemo_transducer' : '';

function describeCtc(facts: BundleFacts): Described {
  const type = facts.metadata['model']?.['model_type'] ?? '';
  if (type.startsWith('EncDec')) return listener(facts, { role: 'nemoCtc', timestamps: ['segment', 'word'], mostSeconds: 60 });
  if (type === 'sense_voice_ctc') return listener(facts, { role: 'senseVoice', timestamps: ['segment', 'word'], mostSeconds: 28 });
  return { ok: false, why: `Choose a model of another type than "${type}": this server cannot load it` };
}

/** The first letter of a voice of Kokoro is its language; espeak-ng knows the languages by these names. */
export const KOKORO_LANGUAGES: Readonly<Record<string, string>> = {
  a: 'en-us',
  b: 'en-gb',
  e: 'es',
  f: 'fr',
  h: 'hi',
  i: 'it',
  j: 'ja',
  p: 'pt-br',
  z: 'zh',
};

function describeKokoro(facts: BundleFacts): Described {
  const metadata = facts.metadata['model'] ?? {};
  if (metadata['model_type'] !== 'kokoro') {
    const type = metadata['model_type'] ?? 'unknown';
    return { ok: false, why: `Choose a model of Kokoro: the metadata of "${facts.bundle.graphs['model']}" names the type "${type}"` };
  }
  if (!facts.bundle.espeak)
    return {
      ok: false,
      why: 'Unpack the whole archive of the model: its directory "espeak-ng-data" is missing, which turns text into sounds',
    };
  const style = (metadata['style_dim'] ?? '').split(',').map(Number);
  const floats = style.reduce((product, length) => product * length, Number(metadata['n_speakers'] ?? 0));
  if (style.length !== 3 || !Number.isSafeInteger(floats) || floats <= 0)
    return { ok: false, why: `Download "${facts.bundle.graphs['model']}" again: its metadata does not say how large its voices are` };
  const size = facts.sizes['voices'] ?? 0;
  if (size !== floats * FLOAT_BYTES) {
    const why = `Download "voices.bin" again: it has ${size} bytes, but the model needs ${floats * FLOAT_BYTES} for its ${metadata['n_speakers']} voices`;
    return { ok: false, why };
  }
  return speaker(facts, 'kokoro', metadata);
}

function describeVits(facts: BundleFacts): Described {
  const metadata = facts.metadata['model'] ?? {};
  const { model = '' } = facts.bundle.graphs;
  if (metadata['sample_rate'] === undefined || metadata['n_speakers'] === undefined || metadata['comment'] === undefined)
    return { ok: false, why: `Choose a model that was prepared for sherpa-onnx: "${model}" has no metadata for it` };
  if (metadata['frontend'] !== 'characters' && !facts.bundle.espeak && facts.bundle.lexicons.length === 0)
    return {
      ok: false,
      why: 'Unpack the whole archive of the model: "espeak-ng-data" or "lexicon.txt" is missing, which turns text into sounds',
    };
  return speaker(facts, 'vits', metadata);
}

function speaker({ bundle }: BundleFacts, role: string, metadata: Metadata): Described {
  const sampleRate = Number(metadata['sample_rate'] ?? 22_050);
  if (!Number.isSafeInteger(sampleRate) || sampleRate < 1000 || sampleRate > 192_000)
    return { ok: false, why: `Choose another model: its metadata names the sample rate "${metadata['sample_rate']}"` };
  const voices = voicesOf(bundle.family, metadata);
  const languages = [...new Set(voices.map(({ language }) => language).filter((language) => language !== ''))];
  const files = { ...bundle.graphs, ...bundle.files, ...(bundle.espeak ? { dataDir: 'espeak-ng-data' } : {}) };
  const multilingual = bundle.family === 'kokoro' && Number(metadata['version'] ?? 1) >= 2;
  const lexicon = bundle.espeak && !multilingual ? [] : bundle.lexicons;
  const options = { lexicon: lexicon.join(','), multilingual: multilingual ? 'yes' : '' };
  const engine = { kind: 'speaker', role, files, options, rules: bundle.rules } as const;
  return {
    ok: true,
    facts: {
      family: bundle.family,
      sampleRate,
      languages,
      translation: false,
      timestamps: [],
      voices,
      clones: false,
      mixes: bundle.family === 'kokoro',
      mostSeconds: 0,
      engine,
    },
  };
}

/** Pocket TTS. Its files say nothing about it: the library has the rate, and the published weights know English. */
function describePocket({ bundle }: BundleFacts): Described {
  const files = { ...bundle.graphs, ...bundle.files };
  const engine = { kind: 'speaker', role: 'pocket', files, options: {}, rules: bundle.rules } as const;
  const more = { languages: ['en'], translation: false, timestamps: [], voices: [], clones: true, mostSeconds: 0 } as const;
  return { ok: true, facts: { family: bundle.family, sampleRate: POCKET_RATE, ...more, engine } };
}

/** Names are used only if there is one for each voice: otherwise, they would name the wrong ones. */
function voicesOf(family: Family, metadata: Metadata): readonly Voice[] {
  const count = Math.max(1, Math.min(10_000, Number(metadata['n_speakers'] ?? 1) || 1));
  const names = (metadata['speaker_names'] ?? '').split(',').map((name) => name.trim());
  const language = metadata['voice'] ?? '';
  if (names.length === count && names.every((name) => name !== ''))
    return names.map((name) => ({ name, language: family === 'kokoro' ? (KOKORO_LANGUAGES[name.charAt(0)] ?? language) : language }));
  if (count === 1) return [{ name: 'default', language }];
  return Array.from({ length: count }, (_, index) => ({ name: `speaker_${index}`, language }));
}
