import { expect, test } from '@jest/globals';
import { textAround } from '../../../../src/providers/image/decide/image-bytes.ts';

const PIECE = 768 * 1024;

test.each([0, 1, 2, 3, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 2])(
  'an image of %d bytes is one text with what is around it, and no piece of that is large',
  (bytes) => {
    const image = Buffer.from(Array.from({ length: 256 }, (_, index) => index)).toString('latin1');
    const whole = Buffer.from(image.repeat(Math.ceil(bytes / 256)).slice(0, bytes), 'latin1');
    const pieces = [...textAround('{"é":"', whole, '"}')];
    expect(pieces.join('') === `{"é":"${whole.toString('base64')}"}`).toBe(true);
    for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual((4 * PIECE) / 3 + 10);
  },
);
