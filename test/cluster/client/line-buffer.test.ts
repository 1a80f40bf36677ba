import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createLineBuffer } from '../../../src/cluster/client/list-splitter.ts';

describe('createLineBuffer()', () => {
  test('returns the same lines however the bytes are split into chunks', () => {
    const line = fc.string({ unit: fc.constantFrom('a', '"', '\\', 'ü', '€', '😀', '\r'), maxLength: 12 });
    fc.assert(
      fc.property(fc.array(line), line, fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }), (lines, rest, sizes) => {
        const bytes = Buffer.from([...lines, rest].join('\n'));
        const buffer = createLineBuffer(1000);
        const read: string[] = [];
        for (let start = 0, turn = 0; start < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          read.push(...(buffer.push(bytes.subarray(start, start + size)) ?? ['too long']));
          start += size;
        }
        expect(read).toEqual(lines);
      }),
    );
  });

  test('returns undefined for a line that exceeds the limit, with or without its newline', () => {
    const text = (length: number, end = ''): Buffer => Buffer.from('x'.repeat(length) + end);
    expect(createLineBuffer(10).push(text(10, '\n'))).toHaveLength(1);
    expect(createLineBuffer(10).push(text(11, '\n'))).toBeUndefined();
    const buffer = createLineBuffer(10);
    expect([buffer.push(text(6)), buffer.push(text(6))]).toEqual([[], undefined]);
  });

  test('handles a long line in many pieces in linear time', () => {
    const buffer = createLineBuffer(16 * 1024 * 1024);
    const piece = Buffer.alloc(1024, 'x');
    for (let index = 0; index < 8192; index += 1) buffer.push(piece);
    const lines = buffer.push(Buffer.from('\n'));
    expect(lines?.map((line) => line.length)).toEqual([8 * 1024 * 1024]);
  });
});
