/** Variants of the demo model for text-to-speech. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DEMO_SAMPLES_PER_CHARACTER, encodeSpeaker, speakerModel } from '../../../toolboxes/demo/demo-speaker.ts';
import { encodeOnnx, type OnnxModel } from '../../../toolboxes/demo/encode-onnx.ts';

/** It takes more time for each character: what it says tells it from the demo model. */
export const SLOW_SAMPLES_PER_CHARACTER = DEMO_SAMPLES_PER_CHARACTER * 2;

export async function writeSlowSpeaker(directory: string): Promise<void> {
  const model = speakerModel();
  const constants = model.constants.map((each) =>
    each.name === 'samples_per_character' ? { ...each, values: [SLOW_SAMPLES_PER_CHARACTER] } : each,
  );
  await writeSpeaker(directory, { ...model, constants });
}

/** Its samples are no numbers for texts with more characters, as those of a quantised model can be for some. */
const BROKEN_CHARACTERS = 20;

export async function writeBrokenSpeaker(directory: string): Promise<void> {
  const model = speakerModel();
  const nodes = model.nodes.map((each) => (each.outputs[0] === 'audio' ? { ...each, outputs: ['sound'] } : each));
  const scalar = (name: string, value: number) => ({ name, type: 'float', shape: [], values: [value] }) as const;
  await writeSpeaker(directory, {
    ...model,
    constants: [...model.constants, scalar('most', BROKEN_CHARACTERS), scalar('no_number', Number.NaN)],
    nodes: [
      ...nodes,
      { op: 'Greater', inputs: ['count_float', 'most'], outputs: ['is_long'] },
      { op: 'Where', inputs: ['is_long', 'no_number', 'one'], outputs: ['factor'] },
      { op: 'Mul', inputs: ['sound', 'factor'], outputs: ['audio'] },
    ],
  });
}

async function writeSpeaker(directory: string, model: OnnxModel): Promise<void> {
  await mkdir(directory);
  for (const [name, bytes] of Object.entries({ ...encodeSpeaker(), 'model.onnx': encodeOnnx(model) }))
    await writeFile(path.join(directory, name), bytes);
}
