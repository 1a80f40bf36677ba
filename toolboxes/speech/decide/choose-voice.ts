/** Finds the voice that a request names: by its name, by a name of OpenAI, or as a mix. Pure. */
import { accept, invalid, refuse, type Outcome } from './refusal.ts';
import { unknownLanguage } from './parse-transcription.ts';
import type { MixPart } from './mix-voices.ts';

export interface Voice {
  readonly name: string;
  /** A code such as `en-us`, or empty if the model does not say. */
  readonly language: string;
}

export interface ChosenVoice {
  /** The number of the voice in the model. */
  readonly speaker: number;
  /** A mix has the language of its first voice. */
  readonly language: string;
  readonly mix?: readonly MixPart[];
}

/** The voices of OpenAI, with the voices of Kokoro that stand for them. In other models, their order decides. */
const OPENAI_VOICES: readonly (readonly [name: string, kokoro: string])[] = [
  ['alloy', 'af_alloy'],
  ['ash', 'am_michael'],
  ['ballad', 'bm_george'],
  ['coral', 'af_heart'],
  ['echo', 'am_echo'],
  ['fable', 'bm_fable'],
  ['nova', 'af_nova'],
  ['onyx', 'am_onyx'],
  ['sage', 'af_sarah'],
  ['shimmer', 'af_bella'],
  ['verse', 'am_puck'],
  ['marin', 'bf_emma'],
  ['cedar', 'am_adam'],
];
const DEFAULT_VOICE = 'af_heart';
/** `af_bella(2)+af_sky`, as Kokoro-FastAPI has it: a weight is 1 unless it is there. */
const MIX_PART = /^\s*([^()+]+?)\s*(?:\(\s*([0-9.]{1,10})\s*\))?\s*$/;
/** Each mix loads the model once more; nobody hears a tenth voice. */
const MOST_MIXED = 8;
/** Names in a message; a model can have a thousand voices. */
const NAMED = 60;

const NO_SAMPLE = refuse({
  status: 422,
  code: 'audio.sample_missing',
  message:
    'Set "ref_audio" to a recording of the voice to imitate, or "voice" to a stored one that "GET /v1/audio/voices" lists: the model has none of its own',
  param: 'ref_audio',
});
const NO_CLONING = refuse({
  status: 422,
  code: 'audio.cloning_unsupported',
  message: 'Remove "ref_audio", or choose a model that imitates voices, such as Pocket TTS: this model has only voices of its own',
  param: 'ref_audio',
});

interface Speaker {
  readonly voices: readonly Voice[];
  readonly clones: boolean;
  readonly mixes?: boolean | undefined;
}

interface Wish {
  readonly voice: string | undefined;
  readonly sample?: unknown;
}

export function chooseVoice({ voices, clones, mixes = false }: Speaker, { voice: wanted, sample }: Wish): Outcome<ChosenVoice> {
  if (clones) return sample === undefined ? NO_SAMPLE : accept({ speaker: 0, language: '' });
  if (sample !== undefined) return NO_CLONING;
  if (wanted === undefined) return chosen(voices, Math.max(0, indexOf(voices, DEFAULT_VOICE)));
  const whole = find(voices, wanted);
  if (whole !== undefined) return chosen(voices, whole);
  const weights = new Map<number, number>();
  for (const text of wanted.split('+', MOST_MIXED + 1)) {
    const part = MIX_PART.exec(text);
    const speaker = part?.[1] === undefined ? undefined : find(voices, part[1]);
    if (speaker === undefined) return unknown(voices, part?.[1] ?? wanted);
    const weight = Number(part?.[2] ?? 1);
    if (!(weight > 0))
      return invalid('voice', `Set the weight of "${voices[speaker]?.name}" to a number above 0, as in "af_bella(2)+af_sky"`);
    weights.set(speaker, (weights.get(speaker) ?? 0) + weight);
  }
  const [only = 0] = weights.keys();
  if (weights.size === 1) return chosen(voices, only);
  if (weights.size > MOST_MIXED) return invalid('voice', `Mix at most ${MOST_MIXED} voices`);
  const mix = Array.from(weights, ([speaker, weight]) => ({ speaker, weight }));
  if (mixes) return accept({ speaker: 0, language: voices[only]?.language ?? '', mix });
  return refuse({
    status: 422,
    code: 'audio.mix_unsupported',
    message: `Choose one voice instead of "${shorten(wanted)}": only models of Kokoro mix voices`,
    param: 'voice',
  });
}

/** The language in which a voice speaks. One that the model does not know is tried in the language of the voice. */
export function chooseLanguage(
  languages: readonly string[],
  voice: ChosenVoice,
  wanted: string,
): { readonly language: string; readonly note?: string } {
  if (wanted === '') return { language: voice.language };
  const known = [wanted, ...(languages.includes(voice.language) ? [voice.language] : []), ...languages].find(
    (language) => languages.includes(language) && (language === wanted || language.startsWith(`${wanted}-`)),
  );
  return known === undefined ? { language: voice.language, note: unknownLanguage(wanted, languages) } : { language: known };
}

function chosen(voices: readonly Voice[], speaker: number): Outcome<ChosenVoice> {
  return accept({ speaker, language: voices[speaker]?.language ?? '' });
}

function find(voices: readonly Voice[], name: string): number | undefined {
  const exact = indexOf(voices, name);
  if (exact !== -1) return exact;
  const place = OPENAI_VOICES.findIndex(([openai]) => openai === name.toLowerCase());
  if (place === -1 || voices.length === 0) return undefined;
  const alike = indexOf(voices, OPENAI_VOICES[place]?.[1] ?? '');
  return alike === -1 ? place % voices.length : alike;
}

const indexOf = (voices: readonly Voice[], name: string): number =>
  voices.findIndex((voice) => voice.name.toLowerCase() === name.toLowerCase());

function unknown(voices: readonly Voice[], wanted: string): Outcome<never> {
  const names = voices.slice(0, NAMED).map(({ name }) => name);
  const more = voices.length > NAMED ? ` and ${voices.length - NAMED} more, which "GET /v1/audio/voices" lists` : '';
  return refuse({
    status: 400,
    code: 'audio.voice_unknown',
    message: `Choose another voice than "${shorten(wanted)}": the model has ${names.join(', ')}${more}`,
    param: 'voice',
  });
}

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);
