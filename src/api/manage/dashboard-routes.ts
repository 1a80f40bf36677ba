/** The dashboard at `/`: open routes for its files, which contain no data and are not in the OpenAPI document. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, chooseEncoding, hasVersion } from '../server/answer.ts';
import type { Route } from '../server/define-route.ts';
import { codeOf } from '../../platform/error-text.ts';

export function createDashboardRoutes(files: PageFiles): readonly Route[] {
  if (!files.has('/')) return [fileRoute('/', refuseUnbuilt)];
  return [...files].map(([path, file]) => fileRoute(path, (request, reply) => sendFile(file, request, reply)));
}

function fileRoute(path: string, handler: Route['handler']): Route {
  return { method: 'GET', path, access: 'open', tag: 'dashboard', summary: 'A file of the dashboard', handler };
}

function refuseUnbuilt(): never {
  throw new ApiError(
    'route.not_found',
    'The dashboard has not been built: run "npm run build:dashboard" in the checkout and start again. The API is at "/api/openapi.json"',
  );
}

async function sendFile({ type, cache, etag, bodies }: PageFile, { headers }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  void reply.headers({ ...SECURITY_HEADERS, 'cache-control': cache, etag, vary: 'Accept-Encoding' });
  if (hasVersion(headers['if-none-match'], etag)) return reply.code(304).send();
  const encoding = chooseEncoding(headers['accept-encoding']);
  const body = bodies[encoding];
  if (body === undefined || encoding === 'identity')
    return reply.type(type).send(bodies.gzip === undefined ? bodies.identity : await unzip(bodies.gzip));
  return reply.header('content-encoding', encoding).type(type).send(body);
}

const unzip = promisify(gunzip);

/** Reads the built dashboard into memory, some hundred kilobytes, so that no request path ever reaches the disk. */
interface PageFile {
  readonly type: string;
  readonly cache: string;
  /** Hash of the unencoded content. It is sent in the weak form, because the encodings of a file share it. */
  readonly etag: string;
  /** A file that is there as `gzip` is not kept as it is: nearly all clients take an encoding. */
  readonly bodies: { readonly br?: Buffer } & (
    | { readonly gzip: Buffer; readonly identity?: undefined }
    | { readonly identity: Buffer; readonly gzip?: undefined }
  );
}

/** Path of a request → file. Empty if the dashboard has not been built. */
type PageFiles = ReadonlyMap<string, PageFile>;

export function readPageFiles(directory: string): PageFiles {
  const read = new Map(listFiles(directory).map((name) => [name, readFileSync(join(directory, name))]));
  const files = new Map<string, PageFile>();
  for (const [name, identity] of read) {
    const path = name === 'index.html' ? '/' : `/${name}`;
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)];
    if (type === undefined) continue;
    const [br, gzip] = [read.get(`${name}.br`), read.get(`${name}.gz`)];
    const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 22);
    const bodies = { ...(br === undefined ? {} : { br }), ...(gzip === undefined ? { identity } : { gzip }) };
    files.set(path, { type, cache: path.startsWith('/assets/') ? FOREVER : ASK_AGAIN, etag: `W/"${hash}"`, bodies });
  }
  return files;
}

function listFiles(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/**
 * The page may load and reach only the service itself. Nothing turns text into markup or code, so output of models and
 * logs stays text. `data:` and `blob:` are images. https://www.w3.org/TR/CSP3/
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const SECURITY_HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** The names of these files change with their content. The page itself is revalidated each time. */
const FOREVER = 'public, max-age=31536000, immutable';
const ASK_AGAIN = 'no-cache';

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
