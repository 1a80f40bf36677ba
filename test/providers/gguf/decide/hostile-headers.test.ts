/**
 * Headers that were damaged or made to do harm: whatever the bytes are, the parser ends, throws nothing, asks only for what comes next, and keeps little.
 *   SVC_TEST_HEADERS   how many of each kind. Default: 1,000, which takes seconds; `npm run test:long -- headers` tries 300,000
 * A failure prints the seed with which it happens again.
 */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ggufContents } from '../../../../src/providers/gguf/decide/gguf-model.ts';
import {
  NO_PROGRESS,
  parseHeaderWindow,
  WINDOW_BYTES,
  type GgufHeader,
  type ParsedHeader,
} from '../../../../src/providers/gguf/decide/parse-gguf-header.ts';
import { parseGgufHeader } from '../../../support/providers/parse-gguf-header.ts';
import { serverMemory } from '../../../../src/providers/gguf/decide/server-layout.ts';
import { ggufFormat } from '../../../../src/providers/gguf/gguf-format.ts';
import type { ModelFiles, ModelReading } from '../../../../src/providers/provider.ts';
import { bool, encodeGguf, f32, f32s, i32s, text, texts, u32 } from '../../../../toolboxes/demo/encode-gguf.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';
import { specOf } from '../slot-context.ts';

const RUNS = Number(process.env['SVC_TEST_HEADERS'] ?? 1000);
const LIMIT_MS = 600_000;
const MIB = 2 ** 20;

/** It has a value of each type that the encoder knows, and everything that the facts are computed from. */
const GOOD = encodeGguf({
  metadata: [
    ['general.architecture', text('gemma3')],
    ['general.file_type', u32(15)],
    ['gemma3.block_count', u32(6)],
    ['gemma3.context_length', u32(4096)],
    ['gemma3.embedding_length', u32(64)],
    ['gemma3.feed_forward_length', i32s([128, 128, 128, 128, 128, 128])],
    ['gemma3.attention.head_count', u32(4)],
    ['gemma3.attention.head_count_kv', i32s([2, 2, 0, 2, 2, 2])],
    ['gemma3.attention.sliding_window', u32(512)],
    ['gemma3.attention.sliding_window_pattern', i32s([1, 1, 1, 1, 1, 0])],
    ['gemma3.attention.layer_norm_rms_epsilon', f32(1e-5)],
    ['gemma3.ssm.inner_size', u32(128)],
    ['tokenizer.ggml.tokens', texts(['<unk>', 'a', '', 'bc'])],
    ['tokenizer.ggml.scores', f32s([0, 1, 2, 3])],
    ['tokenizer.ggml.add_bos_token', bool(true)],
    ['tokenizer.chat_template', text('{% if tools %}<think>{% endif %}')],
  ],
  tensors: [
    { name: 'token_embd.weight', shape: [8, 4], data: new Float32Array(32) },
    { name: 'cls.output.weight', shape: [8], data: new Float32Array(8) },
  ],
});
const HEADER_BYTES = GOOD.length - 32 * 4 - 8 * 4;

/** Numbers that are wrong in the ways that matter: lengths, counts, offsets and types. */
const NUMBERS = [
  0n,
  1n,
  2n,
  8n,
  9n,
  12n,
  13n,
  255n,
  65_535n,
  2n ** 20n,
  2n ** 26n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 1n,
];

const damages: Readonly<Record<string, fc.Arbitrary<Uint8Array>>> = {
  'numbers at any place': fc
    .array(fc.tuple(fc.nat(HEADER_BYTES), fc.constantFrom(...NUMBERS), fc.constantFrom(1, 4, 8)), { minLength: 1, maxLength: 3 })
    .map((changes) => {
      const bytes = Buffer.from(GOOD);
      for (const [at, number, size] of changes) {
        const encoded = Buffer.alloc(8);
        encoded.writeBigUInt64LE(number);
        bytes.set(encoded.subarray(0, Math.min(size, bytes.length - at)), at);
      }
      return bytes;
    }),
  noise: fc.tuple(fc.nat(HEADER_BYTES), fc.uint8Array({ minLength: 1, maxLength: 64 })).map(([at, noise]) => {
    const bytes = Uint8Array.from(GOOD);
    bytes.set(noise.subarray(0, bytes.length - at), at);
    return bytes;
  }),
  'an end at any place': fc.nat(GOOD.length).map((length) => GOOD.subarray(0, length)),
  'a part that is missing or repeated': fc
    .tuple(fc.nat(HEADER_BYTES), fc.nat(HEADER_BYTES))
    .map(([end, start]) => Buffer.concat([GOOD.subarray(0, end), GOOD.subarray(start)])),
  'nothing but noise after the first bytes': fc
    .uint8Array({ maxLength: 512 })
    .map((noise) => Buffer.concat([Buffer.from('GGUF'), Buffer.from([3, 0, 0, 0]), noise])),
};

describe.each(Object.keys(damages))('a header with %s', (kind) => {
  const damaged = damages[kind] ?? fc.constant(GOOD);

  test(
    'is parsed, or refused with a reason, and what it says is finite',
    () => {
      fc.assert(
        fc.property(damaged, (bytes) => {
          const parsed = parseGgufHeader(bytes);
          if (parsed.kind === 'corrupt') expect(parsed.message).toMatch(/^its? /);
          if (parsed.kind === 'header') expectFinite(parsed.header);
        }),
        { numRuns: RUNS },
      );
    },
    LIMIT_MS,
  );

  test(
    'says the same in windows of any length',
    () => {
      fc.assert(
        fc.property(damaged, fc.integer({ min: 1, max: 200 }), (bytes, window) => {
          expect(parseInWindows(bytes, window)).toEqual(parseGgufHeader(bytes));
        }),
        { numRuns: RUNS },
      );
    },
    LIMIT_MS,
  );
});

function expectFinite(header: GgufHeader): void {
  const model = { ...ggufContents([header], undefined), id: ModelId.parse('m.gguf'), hostPath: '/m.gguf', sizeBytes: 1 };
  for (const memory of [{}, { memory: '1Gi' }]) {
    const spec = specOf('primary', { resources: memory, model: { default: 'm.gguf' } });
    const { hostBytes, deviceBytes } = serverMemory('primary', spec, model);
    expect(Number.isFinite(hostBytes) && Number.isFinite(deviceBytes) && hostBytes >= 0 && deviceBytes >= 0).toBe(true);
  }
}

/** A window that does not hold the next value is repeated with twice the length, as a reader would. */
function parseInWindows(bytes: Uint8Array, length: number): ParsedHeader {
  let progress = NO_PROGRESS;
  for (let window = length; ;) {
    const at = progress.position;
    const parsed = parseHeaderWindow(progress, bytes.subarray(at, at + window));
    if (parsed.kind !== 'more' || parsed.progress.position >= bytes.length) return parsed;
    if (parsed.progress.position === at && at + window >= bytes.length) return parsed;
    window = parsed.progress.position === at ? window * 2 : length;
    progress = parsed.progress;
  }
}

/** A file that consists of a beginning, and of zeros or a repeated pattern up to its end. It counts what is read. */
function fileOf(
  beginning: Uint8Array,
  sizeBytes: number,
  pattern = Buffer.alloc(1),
): ModelFiles & { readBytes(): number; largest(): number } {
  let total = 0;
  let largest = 0;
  return {
    names: () => Promise.resolve(['m.gguf']),
    sizeOf: () => Promise.resolve(sizeBytes),
    read(_name, offset, length) {
      const bytes = Buffer.alloc(Math.max(0, Math.min(length, sizeBytes - offset)));
      for (let at = 0; at < bytes.length; at += 1) {
        const position = offset + at;
        bytes[at] = beginning[position] ?? pattern[(position - beginning.length) % pattern.length] ?? 0;
      }
      total += length;
      largest = Math.max(largest, length);
      return Promise.resolve(bytes);
    },
    readBytes: () => total,
    largest: () => largest,
  };
}

const u64 = (value: bigint | number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const word = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const headerStart = (tensors: number, values: number): Buffer => Buffer.concat([Buffer.from('GGUF'), word(3), u64(tensors), u64(values)]);
const key = (name: string, type: number): Buffer => Buffer.concat([u64(name.length), Buffer.from(name), word(type)]);
const [STRING, ARRAY, UINT8] = [8, 9, 0] as const;

const read = async (file: ModelFiles): Promise<ModelReading> =>
  ggufFormat.read({ id: ModelId.parse('m.gguf'), entry: { name: 'm.gguf' } }, file);

test.each([
  [
    'a vocabulary of more texts than any file has',
    [headerStart(0, 1), key('tokenizer.ggml.tokens', ARRAY), word(STRING), u64(2n ** 40n)],
    /it claims to have/,
  ],
  [
    'an array that reaches beyond the end',
    [headerStart(0, 2), key('a.b', ARRAY), word(UINT8), u64(2n ** 26n)],
    /longer than that of any model/,
  ],
  [
    'a text of 60 MB that nobody needs, and then another',
    [headerStart(0, 9), key('general.name', STRING), u64(60e6)],
    /is damaged|is incomplete/,
  ],
  ['a text of more than any model has', [headerStart(0, 1), key('general.name', STRING), u64(2n ** 33n)], /it claims to have/],
  ['arrays in arrays', [headerStart(0, 1), key('a.b', ARRAY), word(ARRAY), u64(3), word(ARRAY), u64(3)], /an array of arrays/],
  [
    'a tensor without end',
    [headerStart(1, 0), u64(1), Buffer.from('t'), word(2), u64(2n ** 40n), u64(2n ** 40n), word(0), u64(0)],
    /larger than any file/,
  ],
  ['a tensor behind the end', [headerStart(1, 0), u64(1), Buffer.from('t'), word(1), u64(4), word(0), u64(2n ** 50n)], /is incomplete/],
  ['a tensor of 4,000 dimensions', [headerStart(1, 0), u64(1), Buffer.from('t'), word(4000)], /has 4000 dimensions/],
  ['a million values without a name', [headerStart(0, 65_536)], /occurs twice/],
  ['a type that does not exist', [headerStart(0, 1), key('a.b', 77)], /unknown type 77/],
])('a file of 40 GB with %s is refused after a few reads', async (_what, parts, message) => {
  const file = fileOf(Buffer.concat(parts), 40e9);
  expect(await read(file)).toMatchObject({ kind: 'unusable', message: expect.stringMatching(message) });
  expect(file.readBytes()).toBeLessThan(4 * MIB);
  expect(file.largest()).toBeLessThanOrEqual(WINDOW_BYTES);
});

test(
  'a vocabulary of empty texts is read no further than the longest header',
  async () => {
    const file = fileOf(Buffer.concat([headerStart(0, 1), key('tokenizer.ggml.tokens', ARRAY), word(STRING), u64(2 ** 26)]), 40e9);
    expect(await read(file)).toMatchObject({ kind: 'unusable', message: expect.stringMatching(/longer than that of any model/) });
    expect(file.readBytes()).toBeLessThan(68 * MIB);
    expect(file.largest()).toBeLessThanOrEqual(WINDOW_BYTES);
  },
  LIMIT_MS,
);

test('values with many long texts are given up before they fill the memory', async () => {
  const value = (index: number): Buffer => {
    const name = Buffer.from(`a.${String(index).padStart(6, '0')}`);
    return Buffer.concat([u64(name.length), name, word(STRING), u64(1_000_000), Buffer.alloc(1_000_000, 'x')]);
  };
  const bytes = Buffer.concat([headerStart(0, 40), ...Array.from({ length: 40 }, (_, index) => value(index))]);
  expect(parseGgufHeader(bytes)).toEqual({ kind: 'corrupt', message: 'its metadata is longer than that of any model' });
});

test('a file that becomes shorter while it is read is incomplete', async () => {
  const file = fileOf(GOOD, GOOD.length);
  const shorter = { ...file, read: async (name: string, offset: number) => file.read(name, offset, Math.max(0, 100 - offset)) };
  expect(await read(shorter)).toMatchObject({ kind: 'unusable', message: expect.stringMatching(/is incomplete/) });
});
