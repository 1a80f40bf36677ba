/** Checks the fields of a transcription. Pure. */
import { TRANSCRIPT_FORMATS, type Granularity, type TranscriptFormat } from './format-transcript.ts';
import { accept, invalid, refuse, type Outcome } from './refusal.ts';

export interface Transcription {
  /** A code such as `en`; undefined lets the model decide. */
  readonly language: string | undefined;
  /** For the client, if it did not get all that it asked for. */
  readonly note?: string;
  readonly format: TranscriptFormat;
  readonly granularities: readonly Granularity[];
  readonly stream: boolean;
  readonly prompt: string;
  readonly temperature: number;
}

/** What a model for speech-to-text can do. */
export interface ListenerAbilities {
  /** Empty if the model finds the language by itself and cannot be told. */
  readonly languages: readonly string[];
  readonly translation: boolean;
  readonly timestamps: readonly Granularity[];
}

/** `fields`: the parts of the form that are no files, in their order. Unknown ones are ignored, and so are hints that the engine cannot use. */
export function parseTranscription(
  fields: readonly (readonly [name: string, value: string])[],
  task: 'transcribe' | 'translate',
  abilities: ListenerAbilities,
): Outcome<Transcription> {
  const value = (name: string): string | undefined => fields.findLast(([candidate, text]) => candidate === name && text !== '')?.[1];
  const format = TRANSCRIPT_FORMATS.find((candidate) => candidate === (value('response_format') ?? 'json'));
  if (format === undefined)
    return invalid(
      'response_format',
      `Set "response_format" to one of ${TRANSCRIPT_FORMATS.join(', ')}, not "${shown(value('response_format'))}"`,
    );
  const temperature = value('temperature');
  if (temperature !== undefined && !(Number(temperature) >= 0 && Number(temperature) <= 1))
    return invalid('temperature', `Set "temperature" to a number from 0 to 1, not "${shown(temperature)}"`);
  const stream = parseBoolean(value('stream'));
  if (stream === undefined) return invalid('stream', `Set "stream" to "true" or "false", not "${shown(value('stream'))}"`);
  if (stream && format !== 'json' && format !== 'text')
    return invalid('stream', `Set "response_format" to "json" to get a stream: "${format}" is sent as a whole`);
  const granularities = parseGranularities(fields, format, abilities);
  if (!granularities.ok) return granularities;
  const language = parseLanguage(value('language'), task, abilities);
  if (!language.ok) return language;
  const hints = { prompt: value('prompt') ?? '', temperature: Number(temperature ?? 0) };
  return accept({ ...language.value, format, granularities: granularities.value, stream, ...hints });
}

function parseBoolean(text: string | undefined): boolean | undefined {
  if (text === undefined || /^(?:false|0)$/i.test(text)) return false;
  return /^(?:true|1)$/i.test(text) ? true : undefined;
}

function parseGranularities(
  fields: readonly (readonly [name: string, value: string])[],
  format: TranscriptFormat,
  abilities: ListenerAbilities,
): Outcome<readonly Granularity[]> {
  const wanted = fields.filter(([name]) => /^timestamp_granularities(?:\[[0-9]*\])?$/.test(name)).map(([, text]) => text);
  const param = 'timestamp_granularities';
  const found: Granularity[] = [];
  for (const text of wanted) {
    if (text !== 'word' && text !== 'segment') return invalid(param, `Set "${param}[]" to "word" or "segment", not "${shown(text)}"`);
    if (!abilities.timestamps.includes(text)) {
      const message = `Ask for timestamps of segments: this model does not tell when a ${text} was spoken`;
      return refuse({ status: 422, code: 'audio.timestamps_unsupported', message, param });
    }
    found.push(text);
  }
  if (found.length > 0 && format !== 'verbose_json')
    return invalid(param, `Set "response_format" to "verbose_json" to get timestamps, not "${format}"`);
  return accept(found);
}

function parseLanguage(
  text: string | undefined,
  task: 'transcribe' | 'translate',
  abilities: ListenerAbilities,
): Outcome<Pick<Transcription, 'language' | 'note'>> {
  if (task === 'translate' && !abilities.translation) {
    const message = 'Transcribe the audio, or choose a multilingual Whisper model: this model cannot translate';
    return refuse({ status: 422, code: 'audio.translation_unsupported', message });
  }
  if (text === undefined || text === 'auto') return accept({ language: undefined });
  const language = /^([a-z]{2,3})(?:[-_][a-z0-9]{2,8})*$/i.exec(text)?.[1]?.toLowerCase();
  if (language === undefined) return invalid('language', `Set "language" to a code such as "en", not "${shown(text)}"`);
  if (abilities.languages.length === 0) return accept({ language: undefined });
  if (abilities.languages.includes(language)) return accept({ language });
  // Clients send the language of their user, whatever the model knows: a transcript may be of use, an error is not.
  return accept({ language: undefined, note: unknownLanguage(language, abilities.languages) });
}

/** For the header `x-svc-note`. */
export const unknownLanguage = (language: string, known: readonly string[]): string =>
  `The model does not know the language "${language}", and was not told it; it knows ${known.join(', ')}`;

const shown = (text: string | undefined): string => (text ?? '').slice(0, 80);
