/** The demo models for speech: directories with a few generated files each, WITHOUT trained weights. One answers every recording with the same sentence, the other plays tones. */
import path from 'node:path';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import type { ModelKind } from '../../schema/model-kinds.ts';
import { encodeListener } from './demo-listener.ts';
import { encodeSpeaker } from './demo-speaker.ts';

export interface DemoSpeech {
  readonly provider: ProviderKind;
  readonly kind: ModelKind;
  readonly encode: () => Readonly<Record<string, Uint8Array>>;
}

export const DEMO_SPEECH = {
  'demo-listener': { provider: 'stt', kind: 'transcription', encode: encodeListener },
  'demo-speaker': { provider: 'tts', kind: 'speech', encode: encodeSpeaker },
} as const satisfies Record<string, DemoSpeech>;

export type DemoSpeechId = keyof typeof DEMO_SPEECH;
/** One file of such a model. */
export type DemoSpeechFile = `${DemoSpeechId}/${string}`;

export const DEMO_SPEECH_IDS: readonly DemoSpeechId[] = ['demo-listener', 'demo-speaker'];

/** Returns the directory of a model, relative to the root of the store. */
export const demoSpeechPath = (id: DemoSpeechId): string => `demo/${id}`;

export function demoSpeechFiles(id: DemoSpeechId): readonly DemoSpeechFile[] {
  return Object.keys(DEMO_SPEECH[id].encode()).map((name) => `${id}/${name}` as const);
}

/** Throws if the model has no such file. */
export function encodeDemoSpeechFile(file: DemoSpeechFile): Uint8Array {
  const id = DEMO_SPEECH_IDS.find((each) => file.startsWith(`${each}/`));
  const bytes = id === undefined ? undefined : DEMO_SPEECH[id].encode()[path.basename(file)];
  if (bytes === undefined) throw new Error(`There is no demo model with the file "${file}"`);
  return bytes;
}
