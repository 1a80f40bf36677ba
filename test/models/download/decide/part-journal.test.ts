import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  BLOCK_BYTES,
  blockCount,
  blockLength,
  journalHead,
  journalLine,
  parseJournal,
  recordsOfPrefix,
} from '../../../../src/models/download/decide/part-journal.ts';
import {
  connectionsFor,
  FAST_BYTES_PER_SECOND,
  isFast,
  nextStretch,
  stretchBlocks,
  type BlockState,
} from '../../../../src/models/download/decide/transfer-pace.ts';

const part = { sizeBytes: 5 * BLOCK_BYTES + 100, sha256: 'AB'.repeat(32) };
const lines = (...records: readonly [number, number, number][]): string =>
  records.map(([block, bytes, crc]) => journalLine(block, { bytes, crc })).join('');

describe('parseJournal()', () => {
  test('returns the last record of each block', () => {
    const text = journalHead(part) + lines([0, 10, 1], [3, BLOCK_BYTES, 7], [0, BLOCK_BYTES, 2]);
    expect([...(parseJournal(text, part) ?? [])]).toEqual([
      [0, { bytes: BLOCK_BYTES, crc: 2 }],
      [3, { bytes: BLOCK_BYTES, crc: 7 }],
    ]);
  });

  test.each([
    ['a line that was cut off', '1 2097152 ff'],
    ['a block behind the end of the file', '6 1 ff\n'],
    ['more bytes than the block has', '5 101 ff\n'],
    ['something else', 'hello\n\n1 2\n'],
  ])('ignores %s', (_, text) => {
    expect(parseJournal(journalHead(part) + text, part)?.size).toBe(0);
  });

  test.each([
    ['of another size', { ...part, sizeBytes: 1 }],
    ['with another hash', { ...part, sha256: 'cd'.repeat(32) }],
  ])('refuses the journal of a file %s', (_, other) => {
    expect(parseJournal(journalHead(part), other)).toBeUndefined();
  });

  test('wherever a journal is cut off, it claims nothing that was not recorded', () => {
    const text = journalHead(part) + lines([0, BLOCK_BYTES, 1], [1, BLOCK_BYTES, 2], [2, 77, 3], [5, 100, 4]);
    const all = parseJournal(text, part);
    fc.assert(
      fc.property(fc.nat(text.length), (length) => {
        for (const [block, record] of parseJournal(text.slice(0, length), part) ?? []) expect(record).toEqual(all?.get(block));
      }),
    );
  });
});

test('a part without a journal is a prefix of the file', () => {
  expect([...recordsOfPrefix(BLOCK_BYTES + 5, part.sizeBytes)]).toEqual([
    [0, { bytes: BLOCK_BYTES, crc: undefined }],
    [1, { bytes: 5, crc: undefined }],
  ]);
  expect(recordsOfPrefix(0, part.sizeBytes).size).toBe(0);
});

test('only the last block of a file is shorter', () => {
  const { sizeBytes } = part;
  expect(blockCount(sizeBytes)).toBe(6);
  expect([0, 4, 5].map((block) => blockLength(block, sizeBytes))).toEqual([BLOCK_BYTES, BLOCK_BYTES, 100]);
});

/** One letter for each block. */
const STATES: Readonly<Record<string, BlockState>> = { c: 'closed', b: 'begun', e: 'empty' };

test.each([
  ['ceeecce', 100, { first: 1, last: 3 }],
  ['ceeecce', 2, { first: 1, last: 2 }],
  ['cc', 2, undefined],
  ['', 2, undefined],
  ['cbeec', 100, { first: 1, last: 3 }],
  ['beebe', 100, { first: 0, last: 2 }],
  ['bbe', 100, { first: 0, last: 0 }],
  ['cebb', 100, { first: 1, last: 1 }],
])('nextStretch() of the blocks %p, at most %p', (letters, most, stretch) => {
  const stateOf = (block: number): BlockState => STATES[letters[block] ?? ''] ?? 'closed';
  expect(nextStretch(stateOf, letters.length, most)).toEqual(stretch);
});

test('small files use one connection, and large ones share what remains', () => {
  const mib = 2 ** 20;
  expect([1, 31 * mib, 33 * mib, 2 ** 40].map((bytes) => connectionsFor(bytes, 4))).toEqual([1, 1, 4, 4]);
  expect(connectionsFor(2 ** 40, 1)).toBe(1);
  expect([33 * mib, 2 ** 34].map((bytes) => stretchBlocks(bytes, 4) * BLOCK_BYTES)).toEqual([8 * mib, 128 * mib]);
});

test('isFast() compares what came in a time with a speed', () => {
  const of = (bytes: number, ms: number): boolean => isFast(bytes, ms, FAST_BYTES_PER_SECOND);
  expect([of(50_000_000, 250), of(49_000_000, 250), of(0, 250), of(25_000_000, 250)]).toEqual([true, false, false, false]);
});
