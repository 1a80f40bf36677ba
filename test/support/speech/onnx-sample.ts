/** Files that look like networks in ONNX, and the models that are made of them. Their graphs compute nothing: only what is around them is read. */
import type { SampleModel } from '../providers/files-in-memory.ts';

const encoder = new TextEncoder();

function number(value: number): readonly number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return [...bytes, rest];
}

function field(id: number, value: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.from([...number(id * 8 + 2), ...number(value.length)]), value]);
}

/** A version, a graph of so many bytes, and the metadata. */
export function encodeOnnx(metadata: Readonly<Record<string, string>> = {}, graphBytes = 1000): Uint8Array {
  const entries = Object.entries(metadata).map(([key, value]) =>
    field(14, Buffer.concat([field(1, encoder.encode(key)), field(2, encoder.encode(value))])),
  );
  return Buffer.concat([Uint8Array.from([0x08, 8]), field(2, encoder.encode('tests')), field(7, new Uint8Array(graphBytes)), ...entries]);
}

function sampleOf(name: string, files: Readonly<Record<string, Uint8Array>>, directories: readonly string[] = []): SampleModel {
  return { entry: { name, names: [...Object.keys(files), ...directories] }, files };
}

const TOKENS = encoder.encode('<unk> 0\nhello 1\n');

export function moonshineSample(): SampleModel {
  const networks = ['preprocess', 'encode.int8', 'uncached_decode.int8', 'cached_decode.int8'];
  const files = Object.fromEntries(networks.map((name) => [`${name}.onnx`, encodeOnnx()]));
  return sampleOf('moonshine-tiny', { ...files, 'tokens.txt': TOKENS });
}

/** With networks of both precisions, as its releases have them. */
export function whisperSample(multilingual: boolean): SampleModel {
  const network = encodeOnnx({ model_type: 'whisper-base', is_multilingual: multilingual ? '1' : '0' });
  const files = Object.fromEntries(['encoder', 'decoder', 'encoder.int8', 'decoder.int8'].map((name) => [`base-${name}.onnx`, network]));
  return sampleOf('whisper-base', { ...files, 'base-tokens.txt': TOKENS });
}

export function transducerSample(): SampleModel {
  const files = Object.fromEntries(['encoder', 'decoder', 'joiner'].map((name) => [`${name}.int8.onnx`, encodeOnnx()]));
  return sampleOf('parakeet', { ...files, 'tokens.txt': TOKENS });
}

export const SAMPLE_VOICES: readonly string[] = ['af_heart', 'am_adam', 'bf_emma', 'zf_xiaoyi'];

/** Its file of voices is as long as its metadata says. */
export function kokoroSample(): SampleModel {
  const metadata = { n_speakers: '4', speaker_names: SAMPLE_VOICES.join(','), style_dim: '5,1,8', sample_rate: '24000' };
  const files = { 'model.onnx': encodeOnnx(metadata), 'voices.bin': new Uint8Array(4 * 5 * 8 * 4), 'tokens.txt': TOKENS };
  return sampleOf('kokoro', files, ['espeak-ng-data']);
}

export function piperSample(): SampleModel {
  return sampleOf('piper', { 'en_US-amy.onnx': encodeOnnx({ n_speakers: '1' }), 'tokens.txt': TOKENS }, ['espeak-ng-data']);
}
