/**
 * A Kokoro without trained weights: its graph has the inputs, outputs and metadata of the released one, and plays a tone whose pitch is the first number of the voice, the
 * longer the more sounds the text has. The data of espeak-ng turns text into sounds.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { encodeOnnx, toType, type OnnxModel, type OnnxNode } from '../../../toolboxes/demo/encode-onnx.ts';

export const KOKORO_RATE = 24_000;
/** Hertz of the tone that each voice plays. */
export const KOKORO_PITCHES: Readonly<Record<string, number>> = { af_bella: 300, af_sky: 600, bf_emma: 400, zf_xiaoyi: 500 };
const STYLE = [510, 1, 256] as const;
const SAMPLES_PER_SOUND = 1200;
/** The sounds of espeak-ng's English, French and Chinese, and punctuation. */
const SOUNDS = new Set(
  '$;:,.!?—…"()“” abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZɑɐɒæɓʙβɔɕçɗɖðʤəɘɚɛɜɝɞɟʄɡɠɢʛɦɧħɥʜɨɪʝɭɬɫɮʟɱɯɰŋɳɲɴøɵɸθœɶʘɹɺɾɻʀʁɽʂʃʈʧʉʊʋⱱʌɣɤʍχʎʏʑʐʒʔʡʕʢˈˌːˑʼʴʰʱʲʷˠˤ˞↓↑→↗↘ᵻ',
);

export async function writeKokoro(directory: string, espeakData: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(path.join(directory, 'model.onnx'), encodeOnnx(toneModel()));
  await writeFile(path.join(directory, 'tokens.txt'), Array.from(SOUNDS, (sound, id) => `${sound} ${id}\n`).join(''));
  await writeFile(path.join(directory, 'voices.bin'), voices());
  await symlink(espeakData, path.join(directory, 'espeak-ng-data'));
}

function voices(): Buffer {
  const size = STYLE[0] * STYLE[1] * STYLE[2];
  const pitches = Object.values(KOKORO_PITCHES);
  const table = new Float32Array(pitches.length * size);
  pitches.forEach((hertz, voice) => {
    for (let length = 0; length < STYLE[0]; length += 1) table[voice * size + length * STYLE[2]] = hertz;
  });
  return Buffer.from(table.buffer);
}

const node = (op: string, inputs: readonly string[], output: string): OnnxNode => ({ op, inputs, outputs: [output] });

function toneModel(): OnnxModel {
  const scalar = (name: string, value: number) => ({ name, type: 'float', shape: [], values: [value] }) as const;
  const index = (name: string, value: number) => ({ name, type: 'int64', shape: [], values: [value] }) as const;
  return {
    name: 'kokoro',
    inputs: [
      { name: 'tokens', type: 'int64', shape: [1, 'sounds'] },
      { name: 'style', type: 'float', shape: [1, STYLE[2]] },
      { name: 'speed', type: 'float', shape: [1] },
    ],
    outputs: [{ name: 'audio', type: 'float', shape: ['samples'] }],
    constants: [
      scalar('zero', 0),
      scalar('one', 1),
      scalar('loudness', 0.3),
      scalar('samples_per_sound', SAMPLES_PER_SOUND),
      scalar('radians', (2 * Math.PI) / KOKORO_RATE),
      index('first', 0),
      index('second', 1),
    ],
    nodes: [
      node('Shape', ['tokens'], 'shape'),
      node('Gather', ['shape', 'second'], 'count'),
      toType('float', 'count', 'sounds'),
      node('Gather', ['speed', 'first'], 'fast'),
      node('Div', ['sounds', 'fast'], 'slowed'),
      node('Mul', ['slowed', 'samples_per_sound'], 'samples'),
      node('Range', ['zero', 'samples', 'one'], 'time'),
      node('Gather', ['style', 'first'], 'row'),
      node('Gather', ['row', 'first'], 'hertz'),
      node('Mul', ['time', 'hertz'], 'cycles'),
      node('Mul', ['cycles', 'radians'], 'phase'),
      node('Sin', ['phase'], 'wave'),
      node('Mul', ['wave', 'loudness'], 'audio'),
    ],
    metadata: {
      model_type: 'kokoro',
      language: 'multi-lang, e.g., English, Chinese',
      has_espeak: '1',
      version: '2',
      voice: 'en-us',
      sample_rate: String(KOKORO_RATE),
      n_speakers: String(Object.keys(KOKORO_PITCHES).length),
      style_dim: STYLE.join(','),
      speaker_names: Object.keys(KOKORO_PITCHES).join(','),
    },
  };
}
