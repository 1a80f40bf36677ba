/**
 * The dashboard at `/`: one route for each of its files. They are open: they are the same for everyone and contain no data. What the page shows, it asks `/api` for, with the credential of the user who looks at it.
 * The routes are not part of the OpenAPI document, which describes what programs use.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../server/answer.ts';
import type { Route } from '../server/route.ts';
import { codeOf } from '../../platform/error-text.ts';

export function createDashboardRoutes(files: PageFiles): readonly Route[] {
  if (!files.has('/')) return [unbuilt()];
  return [...files].map(([path, file]) => ({
    ...facts(path),
    handler: (request, reply) => sendFile(file, request, reply),
  }));
}

function facts(path: string) {
  return { method: 'GET', path, access: 'open', tag: 'dashboard', summary: 'A file of the dashboard' } as const;
}

function unbuilt(): Route {
  return {
    ...facts('/'),
    handler() {
      throw new ApiError(
        'route.not_found',
        'Run "npm run build:dashboard" in the checkout and start again: the dashboard has not been built. The API is at "/api/openapi.json"',
      );
    },
  };
}

function sendFile({ type, cache, etag, bodies }: PageFile, { headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  void reply.headers({ ...SECURITY_HEADERS, 'cache-control': cache, etag, vary: 'Accept-Encoding' });
  if (hasVersion(headers['if-none-match'], etag)) return reply.code(304).send();
  const accepted = headers['accept-encoding'];
  const encoding = chooseEncoding(Array.isArray(accepted) ? accepted.join(',') : accepted);
  const body = bodies[encoding];
  if (body === undefined || encoding === 'identity') return reply.type(type).send(bodies.identity);
  return reply.header('content-encoding', encoding).type(type).send(body);
}

/** Reads the built dashboard into memory: a few files of some hundred kilobytes. What is not read here cannot be asked for, so no path of a request ever reaches the disk. */

interface PageFile {
  readonly type: string;
  readonly cache: string;
  /** Of the content without encoding; the weak form is sent, since encodings of one file share it. */
  readonly etag: string;
  readonly bodies: Readonly<Partial<Record<Encoding, Buffer>>> & { readonly identity: Buffer };
}

/** Path of a request → file. Empty if the dashboard has not been built. */
type PageFiles = ReadonlyMap<string, PageFile>;

export function readPageFiles(directory: string): PageFiles {
  const read = new Map(listFiles(directory).map((name) => [name, readFileSync(join(directory, name))]));
  const files = new Map<string, PageFile>();
  for (const [name, identity] of read) {
    const path = name === 'index.html' ? '/' : `/${name}`;
    const type = mediaTypeOf(name);
    if (type === undefined) continue;
    const [br, gzip] = [read.get(`${name}.br`), read.get(`${name}.gz`)];
    const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 22);
    const bodies = { identity, ...(br === undefined ? {} : { br }), ...(gzip === undefined ? {} : { gzip }) };
    files.set(path, { type, cache: cacheHeader(path), etag: `W/"${hash}"`, bodies });
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

/** The headers with which the files of the dashboard are sent. Pure. */

/**
 * What the page may load and reach: the service itself, and nothing else. Scripts and styles come from files alone, and nothing turns text into markup or code, so that what a model or a log says stays text.
 * `data:` and `blob:` are pictures that a user chose or a model drew. https://www.w3.org/TR/CSP3/
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

/** A year, for files whose name changes with their content. The page itself is asked for again each time, which costs an answer without a body. */
const FOREVER = 'public, max-age=31536000, immutable';
const ASK_AGAIN = 'no-cache';

function cacheHeader(path: string): string {
  return path.startsWith('/assets/') ? FOREVER : ASK_AGAIN;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Undefined for files that are not served. */
function mediaTypeOf(path: string): string | undefined {
  return TYPES[path.slice(path.lastIndexOf('.') + 1)];
}

type Encoding = 'br' | 'gzip' | 'identity';

/** The best encoding that the client accepts, by `Accept-Encoding` (RFC 9110, section 12.5.3). A quality of 0 refuses one. */
export function chooseEncoding(accepted: string | undefined): Encoding {
  const refused = /^(?:0(?:\.0{1,3})?)$/;
  const names = new Set(
    (accepted ?? '').split(',').flatMap((part) => {
      const [name = '', ...rest] = part.split(';').map((text) => text.trim().toLowerCase());
      return rest.some((text) => text.startsWith('q=') && refused.test(text.slice(2))) ? [] : [name];
    }),
  );
  if (names.has('br')) return 'br';
  return names.has('gzip') ? 'gzip' : 'identity';
}

/** Whether `If-None-Match` names the tag, compared weakly, as RFC 9110 asks for (section 13.1.2). */
export function hasVersion(ifNoneMatch: string | undefined, etag: string): boolean {
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  const tags = (ifNoneMatch ?? '').split(',').map(bare);
  return tags.includes('*') || tags.includes(bare(etag));
}
