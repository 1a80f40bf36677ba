import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ggufContents, projectorFor } from '../../../../src/providers/gguf/decide/gguf-model.ts';
import { parseGgufHeader } from '../../../support/providers/parse-gguf-header.ts';
import { shardNames } from '../../../../src/schema/slot/model-providers.ts';
import { encodeEmbedder } from '../../../../toolboxes/demo/demo-embedder.ts';
import { encodeDemoModel } from '../../../../toolboxes/demo/demo-models.ts';
import { encodeGguf, i32s, text, texts, u32 } from '../../../../toolboxes/demo/encode-gguf.ts';

const facts = (bytes: Uint8Array) => {
  const read = parseGgufHeader(bytes);
  if (read.kind !== 'header') throw new Error(read.kind);
  return ggufContents([read.header], undefined);
};

test('parseGgufHeader() finds the facts that providers need', () => {
  expect(facts(encodeDemoModel('demo-fox'))).toMatchObject({
    architecture: 'llama',
    hasClassifier: false,
    trainedContext: 4096,
    blockCount: 1,
    embeddingLength: 64,
    headCount: 2,
    headCountKv: 2,
  });
  expect(facts(encodeDemoModel('demo-embed'))).toMatchObject({ architecture: 'bert', poolingType: 1, hasClassifier: false });
  expect(facts(encodeEmbedder({ name: 'r', head: 'rank' }))).toMatchObject({ poolingType: 4, hasClassifier: true });
});

test('parseGgufHeader() returns the mean of a value that differs between layers', () => {
  const bytes = encodeGguf({
    metadata: [
      ['general.architecture', text('mixed')],
      ['mixed.attention.head_count_kv', i32s([8, 0, 0, 0])],
    ],
    tensors: [],
  });
  expect(facts(bytes).headCountKv).toBe(2);
});

test('parseGgufHeader() returns the minimum length of the file', () => {
  const bytes = encodeDemoModel('demo-fox');
  const read = parseGgufHeader(bytes);
  expect(read.kind === 'header' ? read.header.fileBytes : 0).toBe(bytes.length);
});

test('parseGgufHeader() asks for more bytes wherever a header is cut off', () => {
  const bytes = encodeGguf({
    metadata: [
      ['general.architecture', text('llama')],
      ['llama.context_length', u32(4096)],
      ['tokenizer.ggml.tokens', texts(['a', 'bc', ''])],
    ],
    tensors: [{ name: 'cls.weight', shape: [2, 2], data: new Float32Array(4) }],
  });
  const whole = parseGgufHeader(bytes);
  const headerBytes = whole.kind === 'header' ? whole.header.fileBytes - 16 - 31 : 0;
  for (let length = 0; length < headerBytes; length += 1) expect(parseGgufHeader(bytes.subarray(0, length)).kind).toBe('more');
});

test.each([
  ['another format', Buffer.from('PK\u0003\u0004 and so on'), /does not start with "GGUF"/],
  ['a newer version', Buffer.from([0x47, 0x47, 0x55, 0x46, 99, 0, 0, 0]), /version is 99/],
  ['an absurd count', Buffer.concat([Buffer.from([0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0]), Buffer.alloc(16, 0xff)]), /it claims to have/],
])('parseGgufHeader() explains what is wrong with %s', (_, bytes, message) => {
  expect(parseGgufHeader(bytes)).toMatchObject({ kind: 'corrupt', message: expect.stringMatching(message) });
});

test('parseGgufHeader() returns a result for any bytes', () => {
  const good = encodeGguf({
    metadata: [
      ['a', u32(1)],
      ['b', texts(['x', 'y'])],
    ],
    tensors: [{ name: 't', shape: [4], data: new Float32Array(4) }],
  });
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.uint8Array({ minLength: 1, maxLength: 16 }), (at, noise) => {
      const bytes = Uint8Array.from(good);
      bytes.set(noise.subarray(0, good.length - at), at);
      expect(['header', 'more', 'corrupt']).toContain(parseGgufHeader(bytes).kind);
    }),
    { numRuns: 2000 },
  );
});

test('shardNames() returns every shard of a split model', () => {
  expect(shardNames('m.gguf')).toEqual(['m.gguf']);
  expect(shardNames('m-00001-of-00003.gguf')).toEqual(['m-00001-of-00003.gguf', 'm-00002-of-00003.gguf', 'm-00003-of-00003.gguf']);
});

test.each([
  ['m.gguf', ['m.gguf', 'mmproj-F16.gguf'], 'mmproj-F16.gguf'],
  ['m.gguf', ['m.gguf', 'other.gguf', 'mmproj-F16.gguf'], undefined],
  ['m.gguf', ['m.gguf', 'other.gguf', 'mmproj-m.gguf'], 'mmproj-m.gguf'],
  ['m-00001-of-00002.gguf', ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf', 'mmproj.gguf'], 'mmproj.gguf'],
  ['m.gguf', ['m.gguf'], undefined],
] as const)('projectorFor(%s) among %j is %s', (name, siblings, projector) => {
  expect(projectorFor(name, siblings)).toBe(projector);
});
