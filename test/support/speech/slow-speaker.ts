/** The demo model for text-to-speech, except that it takes more time for each character: what it says tells it from the demo model. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DEMO_SAMPLES_PER_CHARACTER, encodeSpeaker, speakerModel } from '../../../toolboxes/demo/demo-speaker.ts';
import { encodeOnnx } from '../../../toolboxes/demo/encode-onnx.ts';

export const SLOW_SAMPLES_PER_CHARACTER = DEMO_SAMPLES_PER_CHARACTER * 2;

export async function writeSlowSpeaker(directory: string): Promise<void> {
  const model = speakerModel();
  const constants = model.constants.map((each) =>
    each.name === 'samples_per_character' ? { ...each, values: [SLOW_SAMPLES_PER_CHARACTER] } : each,
  );
  await mkdir(directory);
  for (const [name, bytes] of Object.entries({ ...encodeSpeaker(), 'model.onnx': encodeOnnx({ ...model, constants }) }))
    await writeFile(path.join(directory, name), bytes);
}
