/** What is read of models for speech: what they are, what they can do, and what is wrong with damaged ones. */
import { describe, expect, test } from '@jest/globals';
import type { ModelReading } from '../../../src/providers/provider.ts';
import { sttFormat, sttCapabilities } from '../../../src/providers/stt/stt.ts';
import { ttsFormat } from '../../../src/providers/tts/tts.ts';
import { MODEL_FORMATS } from '../../../src/providers/registry.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { filesOf, type SampleModel } from '../../support/providers/files-in-memory.ts';
import { encodeCloner } from '../../support/speech/cloner-model.ts';
import {
  encodeOnnx,
  kokoroSample,
  moonshineSample,
  piperSample,
  SAMPLE_VOICES,
  transducerSample,
  whisperSample,
} from '../../support/speech/onnx-sample.ts';

const id = ModelId.parse('m');
const CLONER: SampleModel = { entry: { name: 'cloner', names: Object.keys(encodeCloner()) }, files: encodeCloner() };
const read = (format: typeof sttFormat, sample: SampleModel): Promise<ModelReading> =>
  format.read({ id, entry: sample.entry }, filesOf(sample));
const messageOf = async (format: typeof sttFormat, sample: SampleModel): Promise<string> => {
  const reading = await read(format, sample);
  return reading.kind === 'unusable' ? reading.message : 'it was read';
};
const withFile = (sample: SampleModel, name: string, bytes: Uint8Array): SampleModel => ({
  ...sample,
  files: { ...sample.files, [name]: bytes },
});

test.each([
  ['a Moonshine', moonshineSample(), 'stt', 'moonshine'],
  ['a Whisper', whisperSample(false), 'stt', 'whisper'],
  ['a transducer', transducerSample(), 'stt', 'transducer'],
  ['a Kokoro', kokoroSample(), 'tts', 'kokoro'],
  ['a voice of Piper', piperSample(), 'tts', 'vits'],
  ['a Pocket TTS', CLONER, 'tts', 'pocket'],
] as const)('%s is recognized by one provider only, and its family is known', async (_what, sample, kind, family) => {
  const knowing = MODEL_FORMATS.filter((format) => format.recognize(sample.entry) !== undefined);
  expect(knowing.map((format) => format.kind)).toEqual([kind]);
  expect(await read(kind === 'stt' ? sttFormat : ttsFormat, sample)).toMatchObject({ kind: 'model', family });
});

test('a directory with something else is no model for speech', () => {
  for (const names of [[], ['tokens.txt'], ['model.onnx'], ['a.gguf'], ['encoder.onnx', 'tokens.txt'], ['voices.bin', 'tokens.txt']]) {
    expect(MODEL_FORMATS.map((format) => format.recognize({ name: 'x', names }))).toEqual([undefined, undefined, undefined]);
  }
});

test('the size of a model is that of the networks that are loaded: the quantised ones, not both', async () => {
  const sample = whisperSample(true);
  const loaded = ['base-encoder.int8.onnx', 'base-decoder.int8.onnx', 'base-tokens.txt'];
  const bytes = loaded.reduce((sum, name) => sum + (sample.files[name]?.length ?? 0), 0);
  expect(await read(sttFormat, sample)).toMatchObject({ sizeBytes: bytes });
});

test('the size of a Kokoro with both precisions is that of the one with 32 bits, which is loaded', async () => {
  const { files, entry } = kokoroSample();
  const both = {
    files: { ...files, 'model.int8.onnx': new Uint8Array(7) },
    entry: { ...entry, names: [...(entry.names ?? []), 'model.int8.onnx'] },
  };
  expect(await read(ttsFormat, both)).toMatchObject({ sizeBytes: Object.values(files).reduce((sum, { length }) => sum + length, 0) });
});

test('only a Whisper of several languages translates', async () => {
  const capabilities = async (sample: SampleModel) => {
    const reading = await read(sttFormat, sample);
    return reading.kind === 'model' ? sttCapabilities({ provider: 'stt', contents: reading.contents }) : [];
  };
  expect(await capabilities(whisperSample(true))).toEqual(['transcription', 'translation']);
  for (const sample of [whisperSample(false), moonshineSample(), transducerSample()])
    expect(await capabilities(sample)).toEqual(['transcription']);
  expect(sttCapabilities({ provider: undefined, contents: undefined })).toEqual(['transcription']);
});

test('a model that imitates voices has none of its own, and each request needs a recording', async () => {
  expect(await read(ttsFormat, CLONER)).toMatchObject({ contents: { voices: [], clones: true } });
  expect(await read(ttsFormat, { ...CLONER, files: { ...CLONER.files, 'vocab.json': new Uint8Array() } })).toMatchObject({
    kind: 'unusable',
  });
});

test('the voices are those of the metadata, in its order', async () => {
  const reading = await read(ttsFormat, kokoroSample());
  expect(reading).toMatchObject({
    contents: { voices: SAMPLE_VOICES.map((voice, index) => ({ id: voice, language: ['en-us', 'en-us', 'en-gb', 'zh'][index] })) },
  });
  expect(await read(ttsFormat, piperSample())).toMatchObject({ contents: { voices: [{ id: 'default' }] } });
});

describe('a damaged model is refused before the engine, which would end its process, sees it', () => {
  const network = encodeOnnx({ model_type: 'x' });
  test.each([
    ['a network that is cut off', network.subarray(0, 500), /^The file "encode\.int8\.onnx" of "m" is cut off; wait/],
    ['an empty network', new Uint8Array(), /is damaged or not an ONNX file/],
    ['a web page', Buffer.from('<!doctype html><title>Not found</title>'), /is damaged or not an ONNX file/],
    ['a network without a graph', Uint8Array.from([0x08, 8]), /is damaged or not an ONNX file/],
  ])('%s', async (_what, bytes, message) => {
    expect(await messageOf(sttFormat, withFile(moonshineSample(), 'encode.int8.onnx', bytes))).toMatch(message);
  });

  test('a file of voices of another model', async () => {
    expect(await messageOf(ttsFormat, withFile(kokoroSample(), 'voices.bin', new Uint8Array(100)))).toBe(
      'The file "voices.bin" of "m" does not belong to its model: it has 100 bytes, and 4 voices take 640; get the model again',
    );
  });

  test('an empty list of tokens', async () => {
    expect(await messageOf(sttFormat, withFile(moonshineSample(), 'tokens.txt', new Uint8Array()))).toMatch(
      /"tokens\.txt" of "m" is empty/,
    );
  });
});
