/** Finds the voice that a request names: by its name, by a name of OpenAI, or as a mix. Pure. */
import { accept, refuse, type Outcome } from './refusal.ts';

export interface Voice {
  readonly name: string;
  /** A code such as `en-us`, or empty if the model does not say. */
  readonly language: string;
}

export interface ChosenVoice {
  /** The number of the voice in the model. */
  readonly speaker: number;
  readonly language: string;
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
const MIX_PART = /^\s*([^()+]+?)\s*(?:\(\s*([0-9.]{1,10})\s*\))?\s*$/;
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
}

interface Wish {
  readonly voice: string | undefined;
  readonly sample?: unknown;
}

export function chooseVoice({ voices, clones }: Speaker, { voice: wanted, sample }: Wish): Outcome<ChosenVoice> {
  if (clones) return sample === undefined ? NO_SAMPLE : accept({ speaker: 0, language: '' });
  if (sample !== undefined) return NO_CLONING;
  if (wanted === undefined) return chosen(voices, Math.max(0, indexOf(voices, DEFAULT_VOICE)));
  const whole = find(voices, wanted);
  if (whole !== undefined) return chosen(voices, whole);
  const parts = wanted.split('+').map((part) => MIX_PART.exec(part));
  const speakers = new Set<number>();
  for (const part of parts) {
    const index = part?.[1] === undefined ? undefined : find(voices, part[1]);
    if (index === undefined) return unknown(voices, part?.[1] ?? wanted);
    speakers.add(index);
  }
  const [only] = speakers;
  if (speakers.size === 1 && only !== undefined) return chosen(voices, only);
  return refuse({
    status: 422,
    code: 'audio.mix_unsupported',
    message: `Choose one voice instead of "${shorten(wanted)}": the engine cannot mix voices`,
    param: 'voice',
  });
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
