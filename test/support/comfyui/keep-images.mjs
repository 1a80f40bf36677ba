// Keeps images in the cache, several at a time and piece by piece, until somebody ends it.
import { setImmediate } from 'node:timers/promises';
import { createImageCache } from '../../../src/files/image-cache.ts';
import { pngOf } from './png.ts';

const [directory = ''] = process.argv.slice(2);
const cache = createImageCache({ directory, limitBytes: 2 ** 30, maxAgeMs: 1e9, wallNow: Date.now });
const png = pngOf(64, 64, 7);

async function keepForever() {
  for (;;) {
    let at = 0;
    await cache.keep(async () => {
      await setImmediate();
      const piece = png.subarray(at, at + 10);
      at += 10;
      return piece.length === 0 ? undefined : piece;
    });
  }
}

await Promise.all(Array.from({ length: 8 }, keepForever));
