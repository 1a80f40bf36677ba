/** Settings of a `/v1/realtime` session, its description, and the client's events. Pure. */
import { z } from 'zod';
import { AudioFormat, PCM_24, type TurnDetection } from './audio-format.ts';
import { parseJson } from '../../../../platform/decide/parse-json.ts';
import { jsonExcess } from '../../../../schema/words/json-skipper.ts';
import { shorten } from '../../../../schema/words/nearest-word.ts';

export interface Transcription {
  /** Undefined: the default slot. */
  readonly model: string | undefined;
  readonly language: string | undefined;
  readonly prompt: string | undefined;
}

export interface SessionSettings {
  readonly format: AudioFormat;
  /** Undefined: sound is committed and not transcribed. */
  readonly transcription: Transcription | undefined;
  /** Undefined: the client commits the sound itself. */
  readonly turns: TurnDetection | undefined;
}

type SettingsUpdate =
  | { readonly ok: true; readonly settings: SessionSettings }
  | { readonly ok: false; readonly message: string; readonly param: string };

/** OpenAI's defaults. */
const USUAL_TURNS: TurnDetection = { threshold: 0.5, prefixMs: 300, silenceMs: 500 };
const LONGEST_PREFIX_MS = 5000;
const LONGEST_SILENCE_MS = 60_000;
/** The limits of the form fields that they become. */
const MODEL_CHARACTERS = 200;
const LANGUAGE_CHARACTERS = 35;
const PROMPT_CHARACTERS = 8192;

const ServerVad = z.object({
  type: z.literal('server_vad', {
    error: 'Unknown way to detect turns; use "server_vad", or set "turn_detection" to null and commit the sound yourself',
  }),
  threshold: z.number().min(0).max(1).nullish(),
  prefix_padding_ms: z.number().min(0).max(LONGEST_PREFIX_MS).nullish(),
  silence_duration_ms: z.number().min(1).max(LONGEST_SILENCE_MS).nullish(),
});

const TranscriptionFields = z.object({
  model: z.string().min(1).max(MODEL_CHARACTERS).nullish(),
  language: z.string().max(LANGUAGE_CHARACTERS).nullish(),
  prompt: z.string().max(PROMPT_CHARACTERS).nullish(),
});

const Session = z.object({
  type: z.literal('transcription', {
    error: 'This service answers no conversations here; use "transcription", or "/v1/chat/completions" and "/v1/audio/speech"',
  }),
  audio: z
    .object({
      input: z
        .object({
          format: AudioFormat.nullish(),
          transcription: TranscriptionFields.nullish(),
          turn_detection: ServerVad.nullish(),
        })
        .nullish(),
    })
    .nullish(),
});

export function firstSettings(model: string | undefined): SessionSettings {
  return { format: PCM_24, transcription: { model, language: undefined, prompt: undefined }, turns: USUAL_TURNS };
}

/** `session` is the object of a `session.update`. What it leaves out stays as it is; `null` turns off. */
export function updateSettings(settings: SessionSettings, session: unknown): SettingsUpdate {
  const parsed = Session.safeParse(session);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const param = ['session', ...(issue?.path ?? [])].join('.');
    return { ok: false, message: `Invalid "${param}": ${issue?.message ?? 'it is invalid'}`, param };
  }
  const input = parsed.data.audio?.input ?? {};
  const { format, transcription, turn_detection: turns } = input;
  return {
    ok: true,
    settings: {
      format: format ?? settings.format,
      transcription: transcription === undefined ? settings.transcription : mergeTranscription(settings.transcription, transcription),
      turns: turns === undefined ? settings.turns : turnsOf(settings.turns ?? USUAL_TURNS, turns),
    },
  };
}

function mergeTranscription(
  known: Transcription | undefined,
  update: z.output<typeof TranscriptionFields> | null,
): Transcription | undefined {
  if (update === null) return undefined;
  const pick = (name: 'model' | 'language' | 'prompt'): string | undefined =>
    update[name] === undefined ? known?.[name] : (update[name] ?? undefined);
  return { model: pick('model'), language: pick('language'), prompt: pick('prompt') };
}

function turnsOf(known: TurnDetection, update: z.output<typeof ServerVad> | null): TurnDetection | undefined {
  if (update === null) return undefined;
  return {
    threshold: update.threshold ?? known.threshold,
    prefixMs: update.prefix_padding_ms ?? known.prefixMs,
    silenceMs: update.silence_duration_ms ?? known.silenceMs,
  };
}

/** The session as OpenAI's API shows it. `expiresAt`: Unix seconds. */
export function describeSession({ format, transcription, turns }: SessionSettings, { id, expiresAt }: { id: string; expiresAt: number }) {
  const { model = null, language = null, prompt = '' } = transcription ?? {};
  const input = {
    format,
    noise_reduction: null,
    transcription: transcription === undefined ? null : { model, language, prompt },
    turn_detection: turns === undefined ? null : describeTurns(turns),
  };
  return { type: 'transcription', object: 'realtime.transcription_session', id, expires_at: expiresAt, audio: { input }, include: null };
}

function describeTurns({ threshold, prefixMs, silenceMs }: TurnDetection) {
  return { type: 'server_vad', threshold, prefix_padding_ms: prefixMs, silence_duration_ms: silenceMs };
}

type ClientEvent =
  | { readonly type: 'session.update'; readonly session?: unknown }
  | { readonly type: 'input_audio_buffer.append'; readonly audio: string }
  | { readonly type: 'input_audio_buffer.commit' }
  | { readonly type: 'input_audio_buffer.clear' };

type ReadEvent =
  | { readonly ok: true; readonly event: ClientEvent; readonly id: string | undefined }
  | { readonly ok: false; readonly message: string; readonly param: string | null; readonly id: string | undefined };

/** OpenAI's limit. */
const ID_CHARACTERS = 512;
const SHOWN_CHARACTERS = 100;

const Named = z.object({ type: z.string() });
const Identified = z.object({ event_id: z.string().max(ID_CHARACTERS) });
const Event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session.update'), session: z.unknown().optional() }),
  z.object({ type: z.literal('input_audio_buffer.append'), audio: z.string() }),
  z.object({ type: z.literal('input_audio_buffer.commit') }),
  z.object({ type: z.literal('input_audio_buffer.clear') }),
]);
const TYPES: readonly string[] = Event.options.map(({ shape }) => shape.type.value);
/** Conversation events, which this service does not support. */
const CONVERSATION = /^(?:conversation\.|response\.|output_audio_buffer\.)/;

/** An id that is no text is left out: it only comes back in errors. */
export function readClientEvent(text: string): ReadEvent {
  const json = jsonExcess(text) === undefined ? parseJson(text) : undefined;
  const id = Identified.safeParse(json).data?.event_id;
  const named = Named.safeParse(json);
  if (!named.success) return { ok: false, message: 'The event is not a JSON object with a "type"', param: 'type', id };
  const { type } = named.data;
  const parsed = Event.safeParse(json);
  if (parsed.success) return { ok: true, event: parsed.data, id };
  if (TYPES.includes(type))
    return { ok: false, message: 'The event has no sound in "audio": send it as text in Base64', param: 'audio', id };
  const why = CONVERSATION.test(type)
    ? 'a session transcribes; conversations are at "/v1/chat/completions", speech at "/v1/audio/speech"'
    : `the known ones are ${TYPES.map((known) => `"${known}"`).join(', ')}`;
  return { ok: false, message: `The event "${shorten(type, SHOWN_CHARACTERS)}" is not supported: ${why}`, param: 'type', id };
}
