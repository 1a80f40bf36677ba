import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { publish, slotName } from '../gateway/support/board-fixture.ts';
import { errorOf, post, raw } from '../gateway/support/client.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';
import { dialectOf } from '../../src/gateway/route/decide/inference-paths.ts';
import { OLLAMA } from '../../src/gateway/route/decide/dialects.ts';

let upstream: FakeUpstream;
let gateway: GatewayFixture;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ settings: { SVC_BODY_LIMIT: '64Ki' } });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.kill();
});

const piece = fc.oneof(
  fc.constantFrom(
    'v1',
    'api',
    'chat',
    'completions',
    'models',
    'rerank',
    'embeddings',
    '..',
    '.',
    '',
    '%2e',
    '%00',
    '%',
    '*',
    ':id',
    'é',
    '?',
    '#',
    ';',
  ),
  fc.string({ maxLength: 8 }),
);
const path = fc.array(piece, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`);
const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'get');
const headerValue = fc.oneof(
  fc.constantFrom('application/json', 'text/plain', 'chunked', '5', '-1', 'close', '100-continue', 'Bearer x', ''),
  fc.string(),
);
const headerName = fc.constantFrom(
  'content-type',
  'accept',
  'x-request-id',
  'authorization',
  'connection',
  'expect',
  'te',
  'if-match',
  'range',
  'upgrade',
);
const body = fc.oneof(fc.json(), fc.string(), fc.constantFrom('', '{}', '{"model":"primary"}', '{"model":{}}', '[]', 'null'));

function shaped(status: number, text: string, head: boolean): void {
  if (status < 400 || head) return;
  // On the paths of Ollama, an error is a string.
  const [, missing] = /^\{"error":"There is no path \\"([^"?\\]+)\\"/.exec(text) ?? [];
  if (missing === undefined) errorOf(text);
  else expect([missing, dialectOf(missing)]).toEqual([missing, OLLAMA]);
}

describe('any request', () => {
  test('that is well-formed HTTP gets an answer of the documented shape and changes nothing', async () => {
    const board = gateway.board.current();
    const headers = fc.dictionary(
      headerName,
      headerValue.map((text) => text.replace(/[^\x20-\x7e]/g, '')),
      { maxKeys: 4 },
    );
    await fc.assert(
      fc.asyncProperty(method, path, headers, body, async (verb, url, extra, text) => {
        const safe = encodeURI(url).replaceAll('%25', '%');
        const { upgrade: _upgrade, expect: _expect, ...rest } = extra;
        const reply = await post(gateway.port, safe, text, { method: verb, headers: { ...rest, connection: 'close' } });
        shaped(reply.status, reply.text, verb === 'HEAD');
        expect(reply.cut).toBe(false);
      }),
      { numRuns: 400 },
    );
    expect(gateway.board.current()).toBe(board);
  });

  test('of arbitrary bytes gets an error of the documented shape, or the connection is closed', async () => {
    const line = fc
      .tuple(method, path, fc.constantFrom(' HTTP/1.1', ' HTTP/1.0', ' HTTP/3.0', ''))
      .map(([verb, url, version]) => `${verb} ${url}${version}\r\n`);
    const header = fc
      .tuple(fc.oneof(headerName, fc.constantFrom('content-length', 'transfer-encoding', 'host', 'x: y')), headerValue)
      .map(([name, text]) => `${name}: ${text}\r\n`);
    const request = fc
      .tuple(line, fc.array(header, { maxLength: 5 }), body)
      .map(([first, lines, text]) => `${first}${lines.join('')}host: localhost\r\nconnection: close\r\n\r\n${text}`);
    const noise = fc.uint8Array({ minLength: 1, maxLength: 100 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 3, arbitrary: request }, { weight: 1, arbitrary: noise }), async (bytes) => {
        const answer = await raw(gateway.port, bytes, '\r\n\r\n\r\n\0\r\n\r\n');
        for (const part of answer.split(/(?=HTTP\/1\.1 \d\d\d )/)) {
          const found = /^HTTP\/1\.1 (\d\d\d) [^]*?\r\n\r\n([^]*)$/.exec(part);
          if (found !== null && found[2] !== '') shaped(Number(found[1]), found[2] ?? '', false);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('leaves no hold, no parked request and no bytes behind', async () => {
    await until(() => gateway.gateway.load().requests === 0);
    expect(gateway.gateway.load().bufferedBytes).toBe(0);
    expect(gateway.traffic.ofSlot(slotName('primary'))).toEqual({ inFlight: 0, parked: 0 });
    expect(gateway.faults).toEqual([]);
    expect((await post(gateway.port, '/v1/chat/completions', '{"model":"primary"}')).status).toBe(200);
  });
});
