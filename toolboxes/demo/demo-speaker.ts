/**
 * The demo model for text-to-speech: a graph of the VITS family, without trained weights. It plays a tone for each letter or digit, and
 * silence for every other character; its voices differ in pitch. Pure.
 */
import { encodeOnnx, toType, type OnnxModel, type OnnxNode } from './encode-onnx.ts';

export const DEMO_SAMPLE_RATE = 24_000;
/** 80 ms. */
export const DEMO_SAMPLES_PER_CHARACTER = 1920;
export const DEMO_VOICES = ['demo_low', 'demo_middle', 'demo_high'] as const;
const PITCH_OF_VOICE = [0.5, 1, 2];

const BOS = '<BOS>';
const EOS = '<EOS>';
const SOUNDING = 'abcdefghijklmnopqrstuvwxyzäöüßáàâãéèêíìîóòôõúùûñçåæø0123456789';
const SILENT = ' .,;:!?\'"()-…';
const CHARACTERS = [...Array.from(SOUNDING), ...Array.from(SILENT)];
const LOWEST_HZ = 220;
const LOUDNESS = 0.3;

export function encodeSpeaker(): Readonly<Record<string, Uint8Array>> {
  const symbols = [BOS, EOS, ...CHARACTERS];
  // The library expects a line with a single space and the number for the space.
  const tokens = symbols.map((symbol, id) => `${symbol} ${id}\n`).join('');
  return { 'model.onnx': encodeOnnx(speakerModel()), 'tokens.txt': Buffer.from(tokens) };
}

/** The pitch rises in 24 steps an octave. */
const pitchOf = (index: number): number => LOWEST_HZ * 2 ** (index / 24);

export function speakerModel(): OnnxModel {
  const pitches = [0, 0, ...CHARACTERS.map((_, index) => pitchOf(index))];
  const loudness = [0, 0, ...CHARACTERS.map((character) => (SOUNDING.includes(character) ? LOUDNESS : 0))];
  const scalar = (name: string, value: number, type: 'float' | 'int64' = 'float') => ({ name, type, shape: [], values: [value] });
  return {
    name: 'tones',
    inputs: [
      { name: 'x', type: 'int64', shape: [1, 'characters'] },
      { name: 'x_length', type: 'int64', shape: [1] },
      { name: 'scales', type: 'float', shape: [3] },
      { name: 'sid', type: 'int64', shape: [1] },
    ],
    outputs: [{ name: 'audio', type: 'float', shape: ['samples'] }],
    constants: [
      { name: 'pitches', type: 'float', shape: [pitches.length], values: pitches },
      { name: 'loudness', type: 'float', shape: [loudness.length], values: loudness },
      { name: 'voices', type: 'float', shape: [PITCH_OF_VOICE.length], values: PITCH_OF_VOICE },
      { name: 'row', type: 'int64', shape: [1], values: [0] },
      scalar('last_mark', 1, 'int64'),
      scalar('first', 0, 'int64'),
      scalar('second', 1, 'int64'),
      scalar('zero', 0),
      scalar('one', 1),
      scalar('samples_per_character', DEMO_SAMPLES_PER_CHARACTER),
      scalar('radians', (2 * Math.PI) / DEMO_SAMPLE_RATE),
      scalar('pi', Math.PI),
    ],
    nodes: [...LENGTH, ...CHARACTER_AT, ...SOUND],
    metadata: {
      model_type: 'vits',
      comment: 'coqui; generated without trained weights',
      language: 'English',
      frontend: 'characters',
      sample_rate: String(DEMO_SAMPLE_RATE),
      n_speakers: String(DEMO_VOICES.length),
      speaker_names: DEMO_VOICES.join(','),
      add_blank: '0',
      use_eos_bos: '1',
      bos_id: '0',
      eos_id: '1',
    },
  };
}

const node = (op: string, inputs: readonly string[], output: string): OnnxNode => ({ op, inputs, outputs: [output] });

/** From the characters without the marks of begin and end, and the speed, follow the samples: 0, 1, 2 … */
const LENGTH: readonly OnnxNode[] = [
  node('Squeeze', ['x', 'row'], 'characters'),
  node('Greater', ['characters', 'last_mark'], 'is_character'),
  { ...node('Compress', ['characters', 'is_character'], 'ids'), attributes: { axis: 0 } },
  node('Size', ['ids'], 'count'),
  toType('float', 'count', 'count_float'),
  node('Gather', ['scales', 'second'], 'slowness'),
  node('Mul', ['samples_per_character', 'slowness'], 'duration'),
  node('Mul', ['count_float', 'duration'], 'length_exact'),
  node('Floor', ['length_exact'], 'length'),
  node('Range', ['zero', 'length', 'one'], 'time'),
];

/** Which character sounds at each sample, and how much of it has passed, from 0 to 1. */
const CHARACTER_AT: readonly OnnxNode[] = [
  node('Div', ['time', 'duration'], 'position'),
  node('Floor', ['position'], 'place'),
  node('Sub', ['position', 'place'], 'passed'),
  toType('int64', 'place', 'place_integer'),
  node('Gather', ['ids', 'place_integer'], 'id'),
];

const SOUND: readonly OnnxNode[] = [
  node('Gather', ['sid', 'first'], 'voice'),
  node('Gather', ['voices', 'voice'], 'pitch_of_voice'),
  node('Gather', ['pitches', 'id'], 'hertz'),
  node('Mul', ['hertz', 'pitch_of_voice'], 'pitch'),
  node('Mul', ['pitch', 'time'], 'cycles'),
  node('Mul', ['cycles', 'radians'], 'phase'),
  node('Sin', ['phase'], 'wave'),
  node('Mul', ['passed', 'pi'], 'half_turn'),
  node('Sin', ['half_turn'], 'swell'),
  node('Gather', ['loudness', 'id'], 'volume'),
  node('Mul', ['wave', 'swell'], 'shaped'),
  node('Mul', ['shaped', 'volume'], 'audio'),
];
