/** Properties of a text-to-speech model, maybe of another version: checked each time. Pure. */
import { z } from 'zod';
import type { ModelFacts, Voice } from '../../provider.ts';

/** More than any known model. */
const MAX_VOICES = 10_000;

const Contents = z.looseObject({
  voices: z.array(z.object({ id: z.string().min(1).max(200), language: z.string().max(40).optional() })).max(MAX_VOICES),
  /** Requests bring a recording of the voice to imitate. */
  clones: z.boolean().optional(),
});

export type TtsContents = Readonly<z.output<typeof Contents>>;

/** First letter of a voice of Kokoro: https://huggingface.co/hexgrad/Kokoro-82M/blob/main/VOICES.md */
const KOKORO_LANGUAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({ a: 'en-us', b: 'en-gb', e: 'es', f: 'fr', h: 'hi', i: 'it', j: 'ja', p: 'pt-br', z: 'zh' }),
);
const FLOAT_BYTES = 4;

/** The speech server counts and names voices in the same way. */
export function ttsContents(family: string, metadata: ReadonlyMap<string, string>): TtsContents {
  // It has no voices of its own.
  if (family === 'pocket') return { voices: [], clones: true };
  const count = countOf(metadata) ?? 1;
  const own = metadata.get('voice');
  const names = (metadata.get('speaker_names') ?? '').split(',').map((name) => name.trim());
  if (names.length !== count || names.includes('')) {
    const numbered = Array.from({ length: Math.min(count, MAX_VOICES) }, (_, index) => `speaker_${index}`);
    return { voices: (count === 1 ? ['default'] : numbered).map((id) => voiceOf(id, own)) };
  }
  const languageOf = (name: string): string | undefined => (family === 'kokoro' ? KOKORO_LANGUAGES.get(name.charAt(0)) : undefined) ?? own;
  return { voices: names.slice(0, MAX_VOICES).map((id) => voiceOf(id, languageOf(id))) };
}

const voiceOf = (id: string, language: string | undefined): TtsContents['voices'][number] =>
  language === undefined || language === '' ? { id } : { id, language };
export const voicesOf = ({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): readonly Voice[] =>
  (provider === 'tts' ? Contents.safeParse(contents).data : undefined)?.voices ?? [];
export const needsSample = ({ contents }: Pick<ModelFacts, 'contents'>): boolean => Contents.safeParse(contents).data?.clones === true;

/** Checks the file of voices, which the engine reads unchecked. The problem continues "The file …"; undefined: none. */
export function voicesProblem(metadata: ReadonlyMap<string, string>, sizeBytes: number): string | undefined {
  const count = countOf(metadata);
  const numbers = (metadata.get('style_dim') ?? '').split(',').reduce((product, each) => product * Number(each), 1);
  if (count === undefined || !Number.isSafeInteger(numbers) || numbers <= 0) return undefined;
  const expected = count * numbers * FLOAT_BYTES;
  if (sizeBytes === expected) return undefined;
  return `does not belong to its model: it has ${sizeBytes} bytes, and ${count} voices take ${expected}; get the model again`;
}

function countOf(metadata: ReadonlyMap<string, string>): number | undefined {
  const count = Number(metadata.get('n_speakers'));
  return Number.isSafeInteger(count) && count > 0 ? count : undefined;
}
