/** A cache with one image, and the requests that show every answer about it. */
import { Readable } from 'node:stream';
import type { ImageSource } from '../../../src/api/ports.ts';

const ID = '11111111-2222-4333-8444-555555555555';
const BYTES = Buffer.from('PNG');
const operation = 'GET /api/images/cache/{file}';
const path = `/api/images/cache/${ID}.png`;

export const IN_MEMORY_IMAGES: ImageSource = {
  async open(id) {
    if (id !== ID) return undefined;
    return {
      sizeBytes: BYTES.length,
      read: (from, to) => Readable.from([BYTES.subarray(from, to + 1)]),
      close: async () => undefined,
    };
  },
};

export const IMAGE_CALLS = [
  { operation, path, expect: 200 },
  { operation, path, headers: { range: 'bytes=0-1' }, expect: 206 },
  { operation, path, headers: { 'if-none-match': `"${ID}"` }, expect: 304 },
  { operation, path, headers: { range: 'bytes=999-' }, expect: 'request.range' },
  { operation, path: '/api/images/cache/other.png', expect: 'image.not_found' },
] as const;
