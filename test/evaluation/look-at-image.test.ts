import { deflateSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { lookAtImage } from '../../src/evaluation/look-at-image.ts';
import { maskOf, pngOf } from '../support/comfyui/png.ts';

/** A PNG with 8 bits for each sample whose rows are already filtered; its checksums are not looked at. */
function filteredPng(width: number, type: number, rows: readonly (readonly number[])[], { depth = 8, interlace = 0 } = {}): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(rows.length, 4);
  head.set([depth, type, 0, 0, interlace], 8);
  const data = deflateSync(Buffer.from(rows.flat()));
  const half = Math.floor(data.length / 2);
  const parts: readonly (readonly [string, Buffer])[] = [
    ['IHDR', head],
    ['IDAT', data.subarray(0, half)],
    ['IDAT', data.subarray(half)],
    ['IEND', Buffer.alloc(0)],
  ];
  const chunks = parts.flatMap(([name, content]) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(content.length);
    return [length, Buffer.from(name), content, Buffer.alloc(4)];
  });
  return Buffer.concat([Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1'), ...chunks]);
}

describe('lookAtImage()', () => {
  test.each<[string, Buffer, object]>([
    ['one shade', pngOf(200, 300, 7), { width: 200, height: 300, isBlank: true }],
    ['one transparent shade', maskOf(64, 32), { width: 64, height: 32, isBlank: true }],
    ['one colour, filtered by the left', filteredPng(3, 2, [[1, 9, 8, 7, 0, 0, 0, 0, 0, 0]]), { isBlank: true }],
    [
      'one colour, filtered by the row above',
      filteredPng(2, 0, [
        [0, 9, 9],
        [2, 0, 0],
      ]),
      { isBlank: true },
    ],
    [
      'one colour, filtered by the mean',
      filteredPng(2, 0, [
        [0, 9, 9],
        [3, 5, 0],
      ]),
      { isBlank: true },
    ],
    [
      'one colour, filtered by Paeth',
      filteredPng(2, 0, [
        [0, 9, 9],
        [4, 0, 0],
      ]),
      { isBlank: true },
    ],
    ['noise that nobody sees', filteredPng(3, 0, [[0, 9, 10, 11]]), { isBlank: true }],
    ['two shades', filteredPng(3, 0, [[0, 9, 10, 12]]), { isBlank: false }],
    ['a gradient that looks like one colour', filteredPng(3, 2, [[1, 9, 9, 9, 5, 5, 5, 5, 5, 5]]), { isBlank: false }],
    ['a last row that differs', filteredPng(1, 0, [...Array.from({ length: 300 }, () => [0, 1]), [0, 255]]), { isBlank: false }],
    ['a palette', filteredPng(2, 3, [[0, 1, 1]]), { width: 2, isBlank: undefined }],
    ['16 bits', filteredPng(1, 0, [[0, 1, 1]], { depth: 16 }), { isBlank: undefined }],
    ['interlaced rows', filteredPng(1, 0, [[0, 1]], { interlace: 1 }), { isBlank: undefined }],
    ['fewer pixels than it claims', maskOf(64, 32, { width: 64, height: 64 }), { height: 64, isBlank: undefined }],
    ['more pixels than it claims', maskOf(64, 32, { width: 64, height: 16 }), { height: 16, isBlank: undefined }],
    ['a claim of billions of pixels', maskOf(8, 8, { width: 2 ** 31, height: 2 ** 31 }), { isBlank: undefined }],
    ['pixels that are no zlib', Buffer.concat([pngOf(8, 8, 1).subarray(0, 41), Buffer.alloc(60, 1)]), { isBlank: undefined }],
  ])('of %s', async (_what, bytes, seen) => expect(await lookAtImage(bytes)).toMatchObject(seen));

  test('of what is no image', async () => {
    expect(await lookAtImage(Buffer.from('<!doctype html><title>No image, but a page</title>'))).toBeUndefined();
    expect(await lookAtImage(Buffer.alloc(0))).toBeUndefined();
  });
});
