/** Five chat models of different sizes, each of which says something else, in slots that load on demand. Their keys and values take most of the memory, so the files are small. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { encodeSentenceModel, sentenceOf } from '../../../toolboxes/demo/demo-chat.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { createModelReader } from '../../../src/models/read-model.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';

export interface SizedSlot {
  readonly name: string;
  readonly words: readonly string[];
  readonly layers: number;
  /** It generates the same two words without end, so its clients limit the length. */
  readonly endless: boolean;
}

const words = (first: string, ...others: readonly string[]): readonly string[] => [first, ...others.map((word) => `▁${word}`)];

export const FIVE_SLOTS: readonly SizedSlot[] = [
  { name: 'ant', words: words('An', 'ant', 'carries', 'a', 'leaf', '.'), layers: 24, endless: false },
  { name: 'clock', words: words('tick', 'tock', 'tick'), layers: 48, endless: true },
  { name: 'dog', words: words('A', 'dog', 'chases', 'its', 'tail', '.'), layers: 96, endless: false },
  { name: 'drum', words: words('boom', 'bang', 'boom'), layers: 128, endless: true },
  { name: 'whale', words: words('The', 'whale', 'sings', 'far', 'below', '.'), layers: 192, endless: false },
];

export const sentenceOfSlot = ({ words: each }: SizedSlot): string => sentenceOf(each);

const modelOf = ({ name }: SizedSlot): string => `sized/${name}.gguf`;

/** One thread: several would wait for each other in busy loops where something else runs as well. */
const documentOf = (slot: SizedSlot) => ({
  provider: 'gguf',
  backend: 'cpu',
  load: 'on-demand',
  model: { default: modelOf(slot), args: ['--threads', '1'] },
});

export const textOfSlot = (slot: SizedSlot): string =>
  `provider = "gguf"\nbackend = "cpu"\nload = "on-demand"\n[model]\ndefault = "${modelOf(slot)}"\nargs = ["--threads", "1"]\n`;

export async function writeSizedModels(root: string): Promise<void> {
  await mkdir(path.join(root, 'sized'), { recursive: true });
  for (const slot of FIVE_SLOTS) {
    const model = { name: slot.name, words: slot.words, layers: slot.layers, then: slot.endless ? 'repeat' : 'end' } as const;
    await writeFile(path.join(root, modelOf(slot)), encodeSentenceModel(model));
  }
}

/** What each slot is estimated to need. */
export async function estimates(root: string): Promise<ReadonlyMap<string, number>> {
  const reader = createModelReader(root, [gguf.models]);
  const found = FIVE_SLOTS.map(async (slot): Promise<readonly [string, number]> => {
    const name = SlotName.parse(slot.name);
    const parsed = parseSlot(name, documentOf(slot));
    const read = await reader.read(ModelId.parse(modelOf(slot)), modelOf(slot));
    if (!parsed.ok || read.kind !== 'present') throw new Error(`The model of "${name}" cannot be read`);
    return [slot.name, gguf.estimateMemory(name, parsed.spec, read.facts).hostBytes];
  });
  return new Map(await Promise.all(found));
}
