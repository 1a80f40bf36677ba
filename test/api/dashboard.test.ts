/** How the files of the dashboard are served. */
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chooseEncoding, hasVersion } from '../../src/api/server/answer.ts';
import { createDashboardRoutes, readPageFiles } from '../../src/api/manage/dashboard-routes.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';

const PAGE = '<!doctype html><title>svc</title>';
const SCRIPT = 'export const a = 1;'.repeat(100);

describe('the dashboard', () => {
  let directory = '';
  let gateway: GatewayFixture;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'svc-page-'));
    mkdirSync(join(directory, 'assets'));
    writeFileSync(join(directory, 'index.html'), PAGE);
    writeFileSync(join(directory, '.stamp'), 'secret');
    writeFileSync(join(directory, 'notes.txt'), 'secret');
    writeFileSync(join(directory, 'assets/a-1.js'), SCRIPT);
    writeFileSync(join(directory, 'assets/a-1.js.br'), brotliCompressSync(SCRIPT));
    writeFileSync(join(directory, 'assets/a-1.js.gz'), gzipSync(SCRIPT));
    // Nobody is let in, as with authentication and without a credential.
    const authorize = (access: string) =>
      access === 'open' ? ({ ok: true } as const) : ({ ok: false, code: 'auth.required', message: 'No' } as const);
    gateway = await startGateway({ routes: createDashboardRoutes(readPageFiles(directory)), authorize });
  });
  afterAll(async () => {
    await gateway.close();
    rmSync(directory, { recursive: true });
  });

  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    fetch(`${gateway.url}${path}`, { headers, method });

  test('serves the page to everyone, under a policy, and to be asked for again', async () => {
    const answer = await get('/');
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, 'text/html; charset=utf-8', PAGE]);
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(answer.headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    const again = await get('/', { 'if-none-match': answer.headers.get('etag') ?? '' });
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect(again.headers.get('etag')).toBe(answer.headers.get('etag'));
  });

  test('serves files whose names change with their content for ever, in the best encoding', async () => {
    const plain = await get('/assets/a-1.js', { 'accept-encoding': 'identity' });
    expect(plain.headers.get('cache-control')).toContain('immutable');
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toBe(SCRIPT);
    const brotli = await get('/assets/a-1.js', { 'accept-encoding': 'gzip, br' });
    expect([brotli.headers.get('content-encoding'), brotli.headers.get('vary'), await brotli.text()]).toEqual([
      'br',
      'Accept-Encoding',
      SCRIPT,
    ]);
    const gzip = await get('/assets/a-1.js', { 'accept-encoding': 'gzip, br;q=0' });
    expect([gzip.headers.get('content-encoding'), await gzip.text()]).toEqual(['gzip', SCRIPT]);
    const head = await get('/assets/a-1.js', { 'accept-encoding': 'br' }, 'HEAD');
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  });

  test.each(['/.stamp', '/notes.txt', '/assets/a-1.js.br', '/index.html', '/assets/../notes.txt', '/assets/%2e%2e/notes.txt', '/assets'])(
    'serves nothing else: %s',
    async (path) => {
      const answer = await get(path);
      expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'route.not_found' } }]);
    },
  );

  test('refuses pages of other sites, as for every route', async () => {
    expect((await get('/', { origin: 'http://evil.test' })).status).toBe(403);
    // A link on another site may lead here.
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    const followed = await new Promise<IncomingMessage>((resolve, reject) =>
      request(gateway.url, { headers }, resolve).on('error', reject).end(),
    );
    followed.resume();
    expect(followed.statusCode).toBe(200);
  });

  test('says how to build it where it has not been built', async () => {
    const bare = await startGateway({ routes: createDashboardRoutes(readPageFiles(join(directory, 'none'))) });
    const answer = await fetch(bare.url);
    expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('npm run build:dashboard')]);
    await bare.close();
  });
});

test.each([
  [undefined, 'identity'],
  ['', 'identity'],
  ['br', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['GZIP;q=0.5', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['br;q=0.000', 'identity'],
  ['*', 'identity'],
])('with "Accept-Encoding: %s", the encoding is %s', (accepted, encoding) => {
  expect(chooseEncoding(accepted)).toBe(encoding);
});

test('an encoding that is not offered is not chosen', () => {
  expect(chooseEncoding('br', ['gzip'])).toBe('identity');
  expect(chooseEncoding('br, gzip', ['gzip'])).toBe('gzip');
});

test.each([
  [undefined, false],
  ['*', true],
  ['"a"', true],
  ['W/"a"', true],
  ['"b", W/"a"', true],
  ['"b"', false],
])('with "If-None-Match: %s", the client has the file: %s', (header, has) => {
  expect(hasVersion(header, 'W/"a"')).toBe(has);
});
