import { describe, expect, test } from '@jest/globals';
import { editSize } from '../../../../src/providers/image/decide/image-facts.ts';
import { readImageFacts } from '../../../../src/providers/decide/read-image-facts.ts';
import { FAMILIES } from '../../../../src/providers/image/decide/image-families.ts';
import { maskOf, pngOf } from '../../../support/comfyui/png.ts';

const hex = (...parts: readonly string[]) => Buffer.from(parts.join('').replaceAll(' ', ''), 'hex');
/** A frame of 512 × 256 pixels. */
const FRAME = 'ffc0 0011 08 0100 0200 03 011100 021100 031100';
/** Orientation 6, in little endian: the camera was held upright. */
const EXIF = 'ffe1 0022 457869660000 49492a00 08000000 0100 1201 0300 01000000 06000000 00000000';
const RIFF = '52494646 00000000 57454250';

const IMAGES: readonly (readonly [string, Buffer, object])[] = [
  ['PNG', pngOf(640, 480, 1), { format: 'png', width: 640, height: 480, hasAlpha: false, isAnimated: false }],
  ['PNG with transparency', maskOf(64, 32), { format: 'png', width: 64, height: 32, hasAlpha: true, isAnimated: false }],
  ['JPEG', hex('ffd8', 'ffe0 0004 0000', FRAME), { format: 'jpeg', width: 512, height: 256, hasAlpha: false, isAnimated: false }],
  ['JPEG on its side', hex('ffd8', EXIF, FRAME), { format: 'jpeg', width: 256, height: 512 }],
  ['WebP', hex(RIFF, '56503820 00000000 000000 9d012a 0002 0001'), { format: 'webp', width: 512, height: 256, isAnimated: false }],
  ['WebP without loss', hex(RIFF, '5650384c 00000000 2f ff c13f 00'), { format: 'webp', width: 512, height: 256, isAnimated: false }],
  ['animated WebP', hex(RIFF, '56503858 0a000000 02 000000 ff0100 ff0000'), { format: 'webp', width: 512, height: 256, isAnimated: true }],
];

describe('readImageFacts()', () => {
  test.each(IMAGES)('%s', (_what, bytes, facts) => expect(readImageFacts(bytes)).toMatchObject(facts));

  test('an animated PNG', () => {
    const png = pngOf(8, 8, 1);
    const control = hex('00000008 6163544c 00000002 00000000 00000000');
    expect(readImageFacts(Buffer.concat([png.subarray(0, 33), control, png.subarray(33)]))).toMatchObject({ isAnimated: true });
  });

  test('no part of an image is an error, or has other sides', () => {
    for (const [, bytes, facts] of IMAGES) {
      for (let length = 0; length < Math.min(bytes.length, 200); length += 1) {
        const found = readImageFacts(bytes.subarray(0, length));
        if (found !== undefined) expect(found).toMatchObject({ ...facts, isAnimated: expect.any(Boolean) });
      }
    }
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['HTML', Buffer.from('<!doctype html><title>A page that is long enough</title>')],
    ['zeros', Buffer.alloc(100)],
    ['a PNG without pixels', maskOf(8, 8, { width: 0, height: 5 })],
    ['a JPEG of tables alone', hex('ffd8', 'ffdb 0002'.repeat(50))],
    ['a list of Exif that never ends', hex('ffd8', 'ffe1 0022 457869660000 49492a00 08000000 ffff', '00'.repeat(30), FRAME)],
  ])('%s is no image', (_what, bytes) => expect(readImageFacts(bytes)).toBeUndefined());
});

test.each([
  [640, 480, 'sd-1.5', 640, 480],
  [643, 485, 'sd-1.5', 640, 480],
  [643, 485, 'flux-dev', 640, 480],
  [4096, 1024, 'sdxl', 2048, 512],
  [4000, 10, 'sdxl', 2048, 64],
] as const)('an image of %dx%d, for %s, becomes one of %dx%d', (width, height, family, toWidth, toHeight) => {
  const facts = { format: 'png', width, height, hasAlpha: false, isAnimated: false } as const;
  expect(editSize(facts, FAMILIES[family])).toEqual({ width: toWidth, height: toHeight });
});
