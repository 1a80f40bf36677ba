/** Writes a transcript in the formats of OpenAI's API. Pure. */

export interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

export interface Segment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly words: readonly Word[];
}

export interface Transcript {
  readonly task: 'transcribe' | 'translate';
  /** A code such as `en`, or empty if the model does not say. */
  readonly language: string;
  /** Seconds of the recording. */
  readonly duration: number;
  readonly segments: readonly Segment[];
}

export type TranscriptFormat = 'json' | 'text' | 'srt' | 'verbose_json' | 'vtt';
export const TRANSCRIPT_FORMATS: readonly TranscriptFormat[] = ['json', 'text', 'srt', 'verbose_json', 'vtt'];
export type Granularity = 'word' | 'segment';

export interface Formatted {
  readonly contentType: string;
  /** Length of the recording, where the body does not say it. */
  readonly seconds?: number;
  readonly body: string;
}

export function formatTranscript(format: TranscriptFormat, transcript: Transcript, granularities: readonly Granularity[]): Formatted {
  const { segments, duration } = transcript;
  const seconds = Math.ceil(duration);
  switch (format) {
    case 'text':
      return { contentType: 'text/plain; charset=utf-8', body: `${wholeText(segments)}\n`, seconds };
    case 'srt':
      return {
        contentType: 'application/x-subrip; charset=utf-8',
        body: segments.map((segment, index) => srtCue(segment, index)).join(''),
        seconds,
      };
    case 'vtt':
      return { contentType: 'text/vtt; charset=utf-8', body: `WEBVTT\n\n${segments.map(vttCue).join('')}`, seconds };
    case 'json':
      return json({ text: wholeText(segments), usage: usageOf(transcript) });
    case 'verbose_json':
      return json(verbose(transcript, granularities));
  }
}

export const deltaEvent = (delta: string): object => ({ type: 'transcript.text.delta', delta });
export const doneEvent = (transcript: Transcript): object => ({
  type: 'transcript.text.done',
  text: wholeText(transcript.segments),
  usage: usageOf(transcript),
});

/** What a stream sends for the next segment, so that all of them together are the whole text. */
export const deltaOf = (text: string, first: boolean): string => (first ? text : ` ${text}`);

const wholeText = (segments: readonly Segment[]): string => segments.map((segment) => segment.text).join(' ');

const json = (body: object): Formatted => ({ contentType: 'application/json; charset=utf-8', body: JSON.stringify(body) });
const usageOf = ({ duration }: Transcript): object => ({ type: 'duration', seconds: Math.ceil(duration) });
const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;

function verbose(transcript: Transcript, granularities: readonly Granularity[]): object {
  const { task, language, duration, segments } = transcript;
  return {
    task,
    language: languageName(language),
    duration: round(duration),
    text: wholeText(segments),
    ...(granularities.includes('segment') || granularities.length === 0 ? { segments: segments.map(verboseSegment) } : {}),
    ...(granularities.includes('word') ? { words: segments.flatMap(({ words }) => words.map(verboseWord)) } : {}),
    usage: usageOf(transcript),
  };
}

const verboseWord = ({ word, start, end }: Word): object => ({ word, start: round(start), end: round(end) });

/** The engine decodes greedily and tells no probabilities; these fields are required by OpenAI's clients. */
const verboseSegment = ({ start, end, text }: Segment, id: number): object => ({
  id,
  seek: Math.round(start * 100),
  start: round(start),
  end: round(end),
  text,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
});

/** OpenAI answers with the English name of a language. */
function languageName(code: string): string {
  if (!/^[a-z]{2,3}$/.test(code)) return code;
  return new Intl.DisplayNames(['en'], { type: 'language' }).of(code)?.toLowerCase() ?? code;
}

const srtCue = ({ start, end, text }: Segment, index: number): string =>
  `${index + 1}\n${clockTime(start, ',')} --> ${clockTime(end, ',')}\n${cueText(text)}\n\n`;
const vttCue = ({ start, end, text }: Segment): string =>
  `${clockTime(start, '.')} --> ${clockTime(end, '.')}\n${cueText(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;')}\n\n`;

/** An empty line would end the cue, and an arrow would begin another one. */
const cueText = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('-->', '->');

export function clockTime(seconds: number, separator: ',' | '.'): string {
  const milliseconds = Math.round(Math.max(0, seconds) * 1000);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const rest = String(milliseconds % 1000).padStart(3, '0');
  return `${two(milliseconds / 3_600_000)}:${two((milliseconds / 60_000) % 60)}:${two((milliseconds / 1000) % 60)}${separator}${rest}`;
}
