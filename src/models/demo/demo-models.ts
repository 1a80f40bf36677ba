/**
 * The demo models: generated files of a few hundred kilobytes WITHOUT trained weights, which know nothing. They allow a first run without
 * a download, and exact tests, because the text of an answer shows which model gave it.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { encodeSentenceModel, sentenceOf } from './demo-chat.ts';
import { encodeEmbedder } from './demo-embedder.ts';
import type { ProviderKind, ModelKind } from '../../schema/slot/provider-kinds.ts';
import { encodeListener } from './demo-listener.ts';
import { encodeSpeaker } from './demo-speaker.ts';

const FOX = ['The', '▁quick', '▁brown', '▁fox', '▁jumps', '▁over', '▁the', '▁lazy', '▁dog', '.'];
const OWL = ['A', '▁wise', '▁old', '▁owl', '▁sat', '▁in', '▁the', '▁oak', '▁and', '▁listened', '▁to', '▁every', '▁word', '.'];
/** The first "tick" starts the text without a space; after it, the other two alternate. */
const CLOCK = ['tick', '▁tock', '▁tick'];

export const DEMO_SENTENCES = { 'demo-fox': sentenceOf(FOX), 'demo-owl': sentenceOf(OWL) } as const;

const DEMO_MODELS = {
  'demo-fox': () => encodeSentenceModel({ name: 'demo-fox', words: FOX, then: 'end' }),
  'demo-owl': () => encodeSentenceModel({ name: 'demo-owl', words: OWL, then: 'end' }),
  'demo-clock': () => encodeSentenceModel({ name: 'demo-clock', words: CLOCK, then: 'repeat' }),
  'demo-embed': () => encodeEmbedder({ name: 'demo-embed', head: 'mean' }),
} as const;

export type DemoModelId = keyof typeof DEMO_MODELS;
/** A model of one file, or a file of a model that is a directory. */
export type DemoFile = DemoModelId | DemoSpeechFile;

export const DEMO_MODEL_IDS: readonly DemoModelId[] = ['demo-fox', 'demo-owl', 'demo-clock', 'demo-embed'];

/** Without `demo-clock`, which generates text until it is stopped. */
const FIRST_RUN: readonly DemoModelId[] = ['demo-fox', 'demo-owl', 'demo-embed'];

/** Returns the path of a demo model, relative to the root of the store. */
export const demoModelPath = (id: DemoFile): string => (isModel(id) ? `demo/${id}.gguf` : `demo/${id}`);

/** Returns the bytes of a demo model, which are the same on every machine. */
export const encodeDemoModel = (id: DemoFile): Uint8Array => (isModel(id) ? DEMO_MODELS[id]() : encodeDemoSpeechFile(id));

const isModel = (id: DemoFile): id is DemoModelId => Object.hasOwn(DEMO_MODELS, id);

/** Writes the demo models for speech below `root`. */
export async function writeDemoSpeech(root: string): Promise<void> {
  await writeDemoModels(root, DEMO_SPEECH_IDS.flatMap(demoSpeechFiles));
}

/** Writes demo models below `root` and returns their absolute paths. Files that already have the right content are not touched. */
export async function writeDemoModels(root: string, ids: readonly DemoFile[] = FIRST_RUN): Promise<readonly string[]> {
  return Promise.all(
    ids.map(async (id) => {
      const file = path.join(root, demoModelPath(id));
      const present = await readFile(file).catch(() => undefined);
      if (present === undefined || Buffer.compare(present, encodeDemoModel(id)) !== 0) await writeDemoModel(id, file);
      return file;
    }),
  );
}

/** Writes one demo model atomically. Other processes and pods may write the same file at the same time. */
export async function writeDemoModel(id: DemoFile, file: string): Promise<void> {
  // A process id would not be unique on a volume that several pods share.
  const part = `${file}.${randomUUID()}.part`;
  try {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(part, encodeDemoModel(id));
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** The demo models for speech: directories with a few generated files each, WITHOUT trained weights. One answers every recording with the same sentence, the other plays tones. */

interface DemoSpeech {
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
type DemoSpeechFile = `${DemoSpeechId}/${string}`;

export const DEMO_SPEECH_IDS: readonly DemoSpeechId[] = ['demo-listener', 'demo-speaker'];

/** Returns the directory of a model, relative to the root of the store. */
export const demoSpeechPath = (id: DemoSpeechId): string => `demo/${id}`;

export function demoSpeechFiles(id: DemoSpeechId): readonly DemoSpeechFile[] {
  return Object.keys(DEMO_SPEECH[id].encode()).map((name) => `${id}/${name}` as const);
}

/** Throws if the model has no such file. */
function encodeDemoSpeechFile(file: DemoSpeechFile): Uint8Array {
  const id = DEMO_SPEECH_IDS.find((each) => file.startsWith(`${each}/`));
  const bytes = id === undefined ? undefined : DEMO_SPEECH[id].encode()[path.basename(file)];
  if (bytes === undefined) throw new Error(`There is no demo model with the file "${file}"`);
  return bytes;
}
