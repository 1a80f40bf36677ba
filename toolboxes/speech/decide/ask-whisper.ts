/** What whisper.cpp's server is asked for a piece of a recording, and what its answer says. Pure. */
import { codeOfLanguage } from './whisper-languages.ts';
import { wavFile } from './write-wav.ts';

export interface WhisperOrder {
  readonly samples: Float32Array;
  readonly rate: number;
  /** Empty lets the model decide. */
  readonly language: string;
  readonly task: 'transcribe' | 'translate';
  readonly prompt: string;
  readonly temperature: number;
}

export interface WhisperAnswer {
  readonly text: string;
  readonly language: string;
  /** Words, of which the first of each begins with a space, and their begins in seconds. */
  readonly tokens: readonly string[];
  readonly timestamps: readonly number[];
}

export interface WhisperFlags {
  readonly model: string;
  readonly port: number;
  /** Nobody else on the machine knows it, so that the answer is that of this server. */
  readonly path: string;
  readonly threads: number;
}

export function whisperFlags({ model, port, path, threads }: WhisperFlags): readonly string[] {
  // The samples are on the loopback only, and no program is run to convert them.
  const where = ['--host', '127.0.0.1', '--port', String(port), '--request-path', path, '--inference-path', '/inference'];
  return ['--model', model, ...where, '--threads', String(threads), '--language', 'auto'];
}

export function whisperForm({ samples, rate, language, task, prompt, temperature }: WhisperOrder): FormData {
  const form = new FormData();
  form.append('response_format', 'verbose_json');
  form.append('language', language === '' ? 'auto' : language);
  form.append('translate', String(task === 'translate'));
  form.append('temperature', String(temperature));
  if (prompt !== '') form.append('prompt', prompt);
  form.append('file', new Blob([wavFile(samples, rate)], { type: 'audio/wav' }), 'piece.wav');
  return form;
}

/** Undefined if it is not the answer of such a server. */
export function readWhisperAnswer(text: string): WhisperAnswer | undefined {
  const answer = parse(text);
  if (!isObject(answer) || typeof answer['text'] !== 'string') return undefined;
  const segments: readonly unknown[] = Array.isArray(answer['segments']) ? answer['segments'] : [];
  const words = segments
    .flatMap((segment) => (isObject(segment) && Array.isArray(segment['words']) ? segment['words'] : []))
    .filter(isWord);
  const language = answer['language'];
  return {
    // Each segment is a line, which is no end of a line for readers.
    text: answer['text'].replaceAll(/\s+/g, ' ').trim(),
    language: typeof language === 'string' ? codeOfLanguage(language) : '',
    tokens: words.map(({ word }) => word),
    timestamps: words.map(({ start }) => start),
  };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;
const isWord = (value: unknown): value is { readonly word: string; readonly start: number } =>
  isObject(value) && typeof value['word'] === 'string' && typeof value['start'] === 'number';

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
