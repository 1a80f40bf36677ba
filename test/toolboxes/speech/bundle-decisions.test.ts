import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { encodeListener } from '../../../toolboxes/demo/demo-listener.ts';
import { DEMO_VOICES, encodeSpeaker } from '../../../toolboxes/demo/demo-speaker.ts';
import { encodeOnnx } from '../../../toolboxes/demo/encode-onnx.ts';
import { describeModel, type BundleFacts } from '../../../toolboxes/speech/decide/describe-model.ts';
import { findBundle, type Bundle } from '../../../toolboxes/speech/decide/find-bundle.ts';
import { nativeConfig } from '../../../toolboxes/speech/decide/native-config.ts';
import { walkOnnx } from '../../../toolboxes/speech/decide/read-onnx.ts';

const files = (...names: readonly string[]) =>
  names.map((name) => ({ name: name.replace(/\/$/, ''), size: 1, directory: name.endsWith('/') }));

function found(task: 'stt' | 'tts', ...names: readonly string[]): Bundle {
  const result = findBundle(task, files(...names));
  if (!result.ok) throw new Error(result.why);
  return result.bundle;
}

describe('findBundle()', () => {
  test.each([
    ['stt', 'moonshine', ['preprocess.onnx', 'encode.int8.onnx', 'uncached_decode.int8.onnx', 'cached_decode.int8.onnx', 'tokens.txt']],
    ['stt', 'moonshine', ['encoder_model.ort', 'decoder_model_merged.ort', 'tokens.txt', 'README.md']],
    ['stt', 'whisper', ['base.en-encoder.onnx', 'base.en-decoder.onnx', 'base.en-tokens.txt', 'test_wavs/']],
    ['stt', 'transducer', ['encoder.int8.onnx', 'decoder.int8.onnx', 'joiner.int8.onnx', 'tokens.txt']],
    ['stt', 'transducer', ['encoder-epoch-99-avg-1.onnx', 'decoder-epoch-99-avg-1.onnx', 'joiner-epoch-99-avg-1.onnx', 'tokens.txt']],
    ['stt', 'ctc', ['model.int8.onnx', 'tokens.txt']],
    ['tts', 'kokoro', ['model.onnx', 'voices.bin', 'tokens.txt', 'espeak-ng-data/', 'lexicon-us-en.txt', 'date-zh.fst']],
    ['tts', 'vits', ['en_US-amy-low.onnx', 'en_US-amy-low.onnx.json', 'tokens.txt', 'espeak-ng-data/']],
    ['tts', 'matcha', ['model-steps-3.onnx', 'vocos-22khz-univ.onnx', 'tokens.txt', 'espeak-ng-data/']],
  ] as const)('%s: recognises %s', (task, family, names) => {
    expect(found(task, ...names).family).toBe(family);
  });

  test('prefers files with integers of 8 bits, which a CPU computes faster', () => {
    const names = ['base-encoder.onnx', 'base-encoder.int8.onnx', 'base-decoder.onnx', 'base-decoder.int8.onnx', 'base-tokens.txt'];
    expect(found('stt', ...names).graphs).toEqual({ encoder: 'base-encoder.int8.onnx', decoder: 'base-decoder.int8.onnx' });
  });

  test.each([
    ['stt', [], 'it contains no files'],
    ['stt', ['model.tar.bz2'], 'Unpack "model.tar.bz2"'],
    ['stt', ['model.gguf'], 'Add the file "tokens.txt"'],
    ['stt', ['encode.onnx', 'tokens.txt'], 'its files are encode.onnx, tokens.txt'],
    ['tts', ['voices.bin', 'tokens.txt'], 'model for text-to-speech'],
  ] as const)('%s: explains why %j is no model', (task, names, why) => {
    expect(findBundle(task, files(...names))).toMatchObject({ ok: false, why: expect.stringContaining(why) });
  });
});

describe('describeModel()', () => {
  const kokoro = {
    model_type: 'kokoro',
    sample_rate: '24000',
    n_speakers: '3',
    style_dim: '510,1,256',
    version: '2',
    voice: 'en-us',
    speaker_names: 'af_heart,bf_emma,ff_siwis',
  };
  const kokoroFiles = [
    'model.onnx',
    'voices.bin',
    'tokens.txt',
    'espeak-ng-data/',
    'lexicon-us-en.txt',
    'lexicon-gb-en.txt',
    'lexicon-zh.txt',
  ];
  const voicesBytes = 3 * 510 * 256 * 4;
  const describeKokoro = (metadata: Readonly<Record<string, string>>, size = voicesBytes, names: readonly string[] = kokoroFiles) =>
    describeModel({ bundle: found('tts', ...names), name: 'kokoro', metadata: { model: metadata }, sizes: { voices: size, tokens: 1 } });

  test('a model of Kokoro has the voices of its metadata, in their order, with their languages', () => {
    expect(describeKokoro(kokoro)).toMatchObject({
      ok: true,
      facts: {
        sampleRate: 24_000,
        languages: ['en-us', 'en-gb', 'fr'],
        voices: [
          { name: 'af_heart', language: 'en-us' },
          { name: 'bf_emma', language: 'en-gb' },
          { name: 'ff_siwis', language: 'fr' },
        ],
      },
    });
  });

  test('names are not used if there are more or fewer of them than voices, because they would name the wrong ones', () => {
    expect(describeKokoro({ ...kokoro, speaker_names: 'a,b' })).toMatchObject({
      facts: { voices: [{ name: 'speaker_0' }, {}, { name: 'speaker_2' }] },
    });
  });

  test.each([
    [
      'a wrong voices file',
      kokoro,
      100,
      kokoroFiles,
      'Download "voices.bin" again: it has 100 bytes, but the model needs 1566720 for its 3 voices',
    ],
    ['no pronunciation', kokoro, voicesBytes, ['model.onnx', 'voices.bin', 'tokens.txt'], 'its directory "espeak-ng-data" is missing'],
    ['another type', { ...kokoro, model_type: 'kitten' }, voicesBytes, kokoroFiles, 'names the type "kitten"'],
    ['no size of its voices', { ...kokoro, style_dim: '' }, voicesBytes, kokoroFiles, 'does not say how large its voices are'],
    ['an absurd rate', { ...kokoro, sample_rate: '7' }, voicesBytes, kokoroFiles, 'names the sample rate "7"'],
  ])('refuses a model of Kokoro with %s', (_, metadata, size, names, why) => {
    expect(describeKokoro(metadata, size, names)).toMatchObject({ ok: false, why: expect.stringContaining(why) });
  });

  test('the configuration for Kokoro always has lexicons or a language, without which the library ends its process', () => {
    const described = describeKokoro(kokoro);
    if (!described.ok) throw new Error(described.why);
    const { engine } = described.facts;
    const config = (language: string) =>
      nativeConfig(engine, { resolve: (name) => `/m/${name}`, threads: 2, language, task: 'transcribe' });
    const files = { model: '/m/model.onnx', voices: '/m/voices.bin', tokens: '/m/tokens.txt', dataDir: '/m/espeak-ng-data' };
    const american = { ...files, lexicon: '/m/lexicon-us-en.txt,/m/lexicon-zh.txt' };
    expect(config('en-us')).toMatchObject({ model: { kokoro: american, numThreads: 2, provider: 'cpu' }, maxNumSentences: 1 });
    expect(config('en-gb')).toMatchObject({ model: { kokoro: { ...files, lexicon: '/m/lexicon-gb-en.txt,/m/lexicon-zh.txt' } } });
    expect(config('fr')).toMatchObject({ model: { kokoro: { ...files, lang: 'fr' } } });
  });

  const chinese = ['date-zh.fst', 'number-zh.fst', 'phone-zh.fst'];
  const configOf = (names: readonly string[], language: string): object => {
    const described = describeKokoro(kokoro, voicesBytes, names);
    if (!described.ok) throw new Error(described.why);
    return nativeConfig(described.facts.engine, { resolve: (name) => `/m/${name}`, threads: 1, language, task: 'transcribe' });
  };

  test('only Chinese voices get the Chinese rules, in the order of the documentation of the library: phone, date, number', () => {
    const names = [...kokoroFiles, ...chinese];
    expect(configOf(names, 'zh')).toMatchObject({ ruleFsts: '/m/phone-zh.fst,/m/date-zh.fst,/m/number-zh.fst' });
    for (const language of ['en-us', 'en-gb', 'fr', 'ja', '']) expect(configOf(names, language)).not.toHaveProperty('ruleFsts');
  });

  test('a Kokoro computes with 32 bits unless only integers of 8 bits are there, which become no numbers for some sentences', () => {
    expect(configOf(['model.int8.onnx', ...kokoroFiles], 'en-us')).toMatchObject({ model: { kokoro: { model: '/m/model.onnx' } } });
    expect(configOf(['model.int8.onnx', ...kokoroFiles.slice(1)], 'en-us')).toMatchObject({
      model: { kokoro: { model: '/m/model.int8.onnx' } },
    });
  });

  const whisper = ['x-encoder.onnx', 'x-decoder.onnx', 'x-tokens.txt'] as const;
  const parakeet = ['encoder.onnx', 'decoder.onnx', 'joiner.onnx', 'tokens.txt'] as const;
  const moonshine = ['preprocess.onnx', 'encode.onnx', 'uncached_decode.onnx', 'cached_decode.onnx', 'tokens.txt'] as const;
  test.each([
    [moonshine, 'sherpa-onnx-moonshine-tiny-en-int8', {}, { languages: ['en'], translation: false, timestamps: ['segment'] }],
    [moonshine, 'sherpa-onnx-moonshine-tiny-ja', {}, { languages: ['ja'] }],
    [whisper, 'base', { is_multilingual: '1', all_language_codes: 'en,de' }, { languages: ['en', 'de'], translation: true }],
    [whisper, 'base.en', { is_multilingual: '0', all_language_codes: 'en,de' }, { languages: ['en'], translation: false }],
    [
      parakeet,
      'parakeet',
      { model_type: 'EncDecRNNTBPEModel' },
      { languages: [], timestamps: ['segment', 'word'], engine: { modelType: 'nemo_transducer' } },
    ],
    [parakeet, 'zipformer', { model_type: 'zipformer2' }, { engine: { modelType: '' } }],
  ] as const)('%j named "%s" with %j', (names, name, encoder, expected) => {
    const facts: BundleFacts = { bundle: found('stt', ...names), name, metadata: { encoder }, sizes: {} };
    expect(describeModel(facts)).toMatchObject({ ok: true, facts: expected });
  });
});

describe('walkOnnx()', () => {
  const walk = (bytes: Uint8Array) => {
    const steps = walkOnnx(bytes.length);
    let step = steps.next();
    let read = 0;
    while (step.value.kind === 'read') {
      read += step.value.length;
      step = steps.next(bytes.subarray(step.value.at, step.value.at + step.value.length));
    }
    return { result: step.value, read };
  };
  const speaker = encodeSpeaker()['model.onnx'] ?? new Uint8Array();

  test('reads the metadata of the demo models, and skips the graph', () => {
    const { result, read } = walk(speaker);
    expect(result).toMatchObject({ kind: 'done', metadata: { speaker_names: DEMO_VOICES.join(','), model_type: 'vits' } });
    expect(read).toBeLessThan(1500);
    for (const [name, bytes] of Object.entries(encodeListener()))
      if (name.endsWith('.onnx')) expect(walk(bytes).result).toEqual({ kind: 'done', metadata: {} });
  });

  test.each([
    ['text', Buffer.from('garbage, and more of it')],
    ['zeros', Buffer.alloc(1000)],
    ['a web page', Buffer.from('<!DOCTYPE html><html>404</html>')],
    ['nothing', Buffer.alloc(0)],
    ['a model without a graph', encodeOnnx({ name: '', inputs: [], outputs: [], constants: [], nodes: [] }).subarray(0, 2)],
  ])('calls %s damaged', (_, bytes) => {
    expect(walk(bytes).result).toMatchObject({ kind: 'damaged' });
  });

  test('calls a model that was cut off damaged, wherever it ends', () => {
    // Behind the graph, each cut inside of a field is found; between two fields, a shorter model is as good as any.
    const graphEnd = walk(speaker).result.kind === 'done' ? speaker.length : 0;
    for (let length = 0; length < graphEnd - 1; length += 97) {
      const { result } = walk(speaker.subarray(0, length));
      if (result.kind === 'done') expect(Object.keys(result.metadata).length).toBeLessThan(11);
    }
    expect(walk(speaker.subarray(0, 1000)).result).toMatchObject({
      kind: 'damaged',
      why: expect.stringContaining('ends after 1000 bytes'),
    });
  });

  test('ends for any bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => expect(['done', 'damaged']).toContain(walk(bytes).result.kind)));
  });
});
