/** Images for clients that asked for URLs. They never change, so clients may cache them forever. */
import { z } from 'zod';
import type { ImageSource } from '../ports.ts';
import { empty, text, ApiError } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';

const PNG = 'image/png';
const FILE = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.png$/;
/** The longest time that caches understand. Shared caches must not keep an image, because tokens protect it. */
const CACHE_CONTROL = 'private, max-age=31536000, immutable';

const Input = z.object({
  params: z.object({ file: z.string().describe('`<uuid>.png`') }),
  headers: z.object({
    range: z.string().optional().describe('`bytes=0-1023`'),
    'if-none-match': z.string().optional().describe('The `ETag` of an image that the client has'),
  }),
});

const HEADERS = {
  'cache-control': 'The image never changes',
  etag: 'Names the content',
  'accept-ranges': '`bytes`',
  'content-length': 'Number of bytes',
};

export function createImageRoutes(images: ImageSource): readonly DocumentedRoute[] {
  return [
    defineRoute('GET', '/api/images/cache/:file', 'any', {
      tag: 'inference',
      summary: 'Returns an image that was drawn with `response_format` "url"',
      input: Input,
      answers: {
        200: text('The image', PNG, HEADERS),
        206: text('A part of the image', PNG, { ...HEADERS, 'content-range': 'The range of bytes' }),
        304: empty('The client has the image', { etag: HEADERS.etag }),
      },
      errors: ['image.not_found', 'request.range'],
      async handler({ params, headers }) {
        const id = FILE.exec(params.file)?.[1];
        const image = id === undefined ? undefined : await images.open(id);
        if (id === undefined || image === undefined)
          throw new ApiError('image.not_found', 'The image does not exist, or the cache no longer has it: draw it again');
        const etag = `"${id}"`;
        const shared = { 'cache-control': CACHE_CONTROL, etag, 'accept-ranges': 'bytes', 'x-content-type-options': 'nosniff' };
        if (headers['if-none-match']?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag || each.trim() === '*') === true) {
          await image.close();
          return { status: 304, body: undefined, headers: shared };
        }
        const range = parseRange(headers.range, image.sizeBytes);
        if (range === 'unsatisfiable') {
          await image.close();
          const message = `The range "${headers.range}" is outside of the image, which has ${image.sizeBytes} bytes`;
          throw new ApiError('request.range', message, { headers: { 'content-range': `bytes */${image.sizeBytes}` } });
        }
        const { from, to } = range ?? { from: 0, to: image.sizeBytes - 1 };
        const length = { 'content-length': String(to - from + 1) };
        const body = image.read(from, to);
        if (range === undefined) return { status: 200, body, headers: { ...shared, ...length } };
        return { status: 206, body, headers: { ...shared, ...length, 'content-range': `bytes ${from}-${to}/${image.sizeBytes}` } };
      },
    }),
  ];
}

/** Both ends are included. */
type ByteRange = Readonly<{ from: number; to: number }>;

/** Undefined: the whole file, also for several ranges and for what is malformed, which a server may ignore. */
export function parseRange(header: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.trim() ?? '');
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const bytes = Number(last);
    return bytes === 0 || sizeBytes === 0 ? 'unsatisfiable' : { from: Math.max(0, sizeBytes - bytes), to: sizeBytes - 1 };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return undefined;
  if (from >= sizeBytes) return 'unsatisfiable';
  return { from, to: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}
