/**
 * The demo models: a few hundred kilobytes each, made here, never downloaded. They contain NO trained weights and know nothing.
 * They make a first run possible without a download, and tests exact: which model answered is visible in the text.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { encodeSentenceModel, sentenceOf } from './demo-chat.ts';
import { encodeEmbedder } from './demo-embedder.ts';

const FOX = ['The', '▁quick', '▁brown', '▁fox', '▁jumps', '▁over', '▁the', '▁lazy', '▁dog', '.'];
const OWL = ['A', '▁wise', '▁old', '▁owl', '▁sat', '▁in', '▁the', '▁oak', '▁and', '▁listened', '▁to', '▁every', '▁word', '.'];
/** The first "tick" begins the text, so it has no space before it; the rounds after it alternate between the other two. */
const CLOCK = ['tick', '▁tock', '▁tick'];

export const DEMO_SENTENCES = { 'demo-fox': sentenceOf(FOX), 'demo-owl': sentenceOf(OWL) } as const;

const DEMO_MODELS = {
  'demo-fox': () => encodeSentenceModel({ name: 'demo-fox', words: FOX, then: 'end' }),
  'demo-owl': () => encodeSentenceModel({ name: 'demo-owl', words: OWL, then: 'end' }),
  'demo-clock': () => encodeSentenceModel({ name: 'demo-clock', words: CLOCK, then: 'repeat' }),
  'demo-embed': () => encodeEmbedder({ name: 'demo-embed', head: 'mean' }),
} as const;

export type DemoModelId = keyof typeof DEMO_MODELS;

export const DEMO_MODEL_IDS: readonly DemoModelId[] = ['demo-fox', 'demo-owl', 'demo-clock', 'demo-embed'];

/** `demo-clock` never stops by itself, so that a first run does not get it unasked. */
const FIRST_RUN: readonly DemoModelId[] = ['demo-fox', 'demo-owl', 'demo-embed'];

/** The file of a demo model below the store's root. */
export const demoModelPath = (id: DemoModelId): string => `demo/${id}.gguf`;

/** The bytes of a demo model: the same each time, on each machine. */
export const encodeDemoModel = (id: DemoModelId): Uint8Array => DEMO_MODELS[id]();

/** Writes demo models below `root` and answers their absolute paths. A file that has the right bytes is left alone. */
export async function writeDemoModels(root: string, ids: readonly DemoModelId[] = FIRST_RUN): Promise<readonly string[]> {
  return Promise.all(
    ids.map(async (id) => {
      const file = path.join(root, demoModelPath(id));
      const bytes = encodeDemoModel(id);
      const present = await readFile(file).catch(() => undefined);
      if (present !== undefined && Buffer.compare(present, bytes) === 0) return file;
      await mkdir(path.dirname(file), { recursive: true });
      // a process id tells nothing apart on a volume that several pods share
      const partial = `${file}.${randomUUID()}.part`;
      await writeFile(partial, bytes);
      await rename(partial, file);
      return file;
    }),
  );
}
