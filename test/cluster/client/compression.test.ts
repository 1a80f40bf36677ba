/** Compressed answers of an API server, good and bad. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { createKubeApi } from '../../../src/cluster/client/api-client.ts';
import type { KubeApi } from '../../../src/cluster/client/ports.ts';
import { CONFIG_MAPS } from '../../../src/cluster/client/decide/resource-path.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';
import { reasonOf, valueOf } from '../../support/kube/kube-api-contract.ts';

const SIGNAL = new AbortController().signal;
let server: Server;

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<KubeApi> {
  server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const kubeconfigText = JSON.stringify({
    clusters: [
      {
        name: 'c',
        cluster: { server: `http://127.0.0.1:${isTable(address) ? String(address['port']) : ''}`, 'insecure-skip-tls-verify': true },
      },
    ],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'default' } }],
    'current-context': 'x',
  });
  return valueOf(await createKubeApi({ version: 'test', env: {}, kubeconfigText }));
}

const listOf = (count: number): string =>
  JSON.stringify({
    kind: 'ConfigMapList',
    metadata: { resourceVersion: '7' },
    items: Array.from({ length: count }, (_, index) => ({ metadata: { name: `c-${index}` }, data: { text: 'ü'.repeat(300) } })),
  });

describe('createKubeApi()', () => {
  test('asks for compressed lists and reads them, and does not ask for compressed watches', async () => {
    const encodings: unknown[] = [];
    let sentBytes = 0;
    const api = await serve((request, response) => {
      encodings.push(request.headers['accept-encoding']);
      const body = gzipSync(listOf(2000), { level: 4 });
      sentBytes = body.length;
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(body);
    });
    const { items, resourceVersion } = valueOf(await api.list(CONFIG_MAPS, {}, SIGNAL));
    expect([items.length, resourceVersion, items[1999]?.['data']]).toEqual([2000, '7', { text: 'ü'.repeat(300) }]);
    expect(sentBytes).toBeLessThan(listOf(2000).length / 10);
    valueOf(await api.stream(CONFIG_MAPS, { query: { watch: 'true' } }, SIGNAL));
    expect(encodings).toEqual(['gzip', undefined]);
  });

  test('reads at most so much of what a compressed answer becomes', async () => {
    const spaces = gzipSync(`{"items":[]${' '.repeat(64 * 1024 * 1024)}}`);
    const item = gzipSync(`{"items":[{"metadata":{"name":"a"},"data":"${'x'.repeat(64 * 1024 * 1024)}"}]}`);
    for (const body of [spaces, item]) {
      expect(body.length).toBeLessThan(100_000);
      const api = await serve((_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(body));
      const before = process.memoryUsage().rss;
      expect(reasonOf(await api.list(CONFIG_MAPS, {}, SIGNAL))).toBe('ApiFailed');
      expect(process.memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
      server.closeAllConnections();
      server.close();
    }
  });

  test.each<[string, Readonly<Record<string, string>>, (body: Buffer) => Buffer]>([
    ['is cut', { 'content-encoding': 'gzip' }, (body) => body.subarray(0, body.length / 2)],
    ['is damaged', { 'content-encoding': 'gzip' }, (body) => Buffer.concat([body.subarray(0, 200), Buffer.alloc(50), body.subarray(250)])],
    ['has another encoding', { 'content-encoding': 'br' }, (body) => body],
  ])('fails, and nothing else, if a compressed list %s', async (_what, headers, change) => {
    const api = await serve((_request, response) => void response.writeHead(200, headers).end(change(gzipSync(listOf(2000)))));
    expect(reasonOf(await api.list(CONFIG_MAPS, {}, SIGNAL))).toBe('ApiUnreachable');
  });
});
