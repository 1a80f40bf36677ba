/**
 * The demo models: generated files of a few hundred kilobytes WITHOUT trained weights, which know nothing. They allow a first run without
 * a download, and exact tests, because the text of an answer shows which model gave it.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { encodeSentenceModel, sentenceOf } from './demo-chat.ts';
import { encodeEmbedder } from './demo-embedder.ts';
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

/** Directories of a few files each. One answers every recording with the same sentence, the other plays tones. */
const DEMO_SPEECH = { 'demo-listener': encodeListener, 'demo-speaker': encodeSpeaker } as const;

export type DemoModelId = keyof typeof DEMO_MODELS;

export const DEMO_MODEL_IDS: readonly DemoModelId[] = ['demo-fox', 'demo-owl', 'demo-clock', 'demo-embed'];

/** Without `demo-clock`, which generates text until it is stopped. */
const FIRST_RUN: readonly DemoModelId[] = ['demo-fox', 'demo-owl', 'demo-embed'];

/** Returns the path of a demo model, relative to the root of the store. */
export const demoModelPath = (id: DemoModelId): string => `demo/${id}.gguf`;

/** Returns the bytes of a demo model, which are the same on every machine. */
export const encodeDemoModel = (id: DemoModelId): Uint8Array => DEMO_MODELS[id]();

/** Returns the bytes of the generated file with this path in a store. Throws if there is no such file. */
export function encodeDemoFile(file: string): Uint8Array {
  const id = DEMO_MODEL_IDS.find((each) => demoModelPath(each) === file);
  const bytes = id === undefined ? speechFiles().get(file) : encodeDemoModel(id);
  if (bytes === undefined) throw new Error(`There is no demo model with the file "${file}"`);
  return bytes;
}

/** Writes demo models below `root` and returns their absolute paths. Does not touch files that have the right content. */
export async function writeDemoModels(root: string, ids: readonly DemoModelId[] = FIRST_RUN): Promise<readonly string[]> {
  return Promise.all(ids.map(async (id) => writeDemoFile(demoModelPath(id), path.join(root, demoModelPath(id)))));
}

/** Writes the demo models for speech below `root`. */
export async function writeDemoSpeech(root: string): Promise<void> {
  await Promise.all([...speechFiles().keys()].map(async (file) => writeDemoFile(file, path.join(root, file))));
}

function speechFiles(): ReadonlyMap<string, Uint8Array> {
  const models = Object.entries(DEMO_SPEECH).map(([id, encode]) => [id, encode()] as const);
  return new Map(models.flatMap(([id, files]) => Object.entries(files).map(([name, bytes]) => [`demo/${id}/${name}`, bytes] as const)));
}

/** Atomic: other processes and pods may write the same file at the same time. */
export async function writeDemoFile(name: string, file: string): Promise<string> {
  const bytes = encodeDemoFile(name);
  const present = await readFile(file).catch(() => undefined);
  if (present !== undefined && Buffer.compare(present, bytes) === 0) return file;
  // A process id would not be unique on a volume that several pods share.
  const part = `${file}.${randomUUID()}.part`;
  try {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(part, bytes);
    await rename(part, file);
    return file;
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw error;
  }
}
