/** The plain path alone, without any of the extensions that `create-gateway.ts` adds. */
import { createServer } from 'node:http';
import { expect, jest, test } from '@jest/globals';
import type { Extensions, FinishedRequest } from '../../src/gateway/exchange-deps.ts';
import { createPlainGateway } from '../../src/gateway/gateway.ts';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { parseRequestHead } from '../../src/gateway/upstream/decide/request-head.ts';
import { createBoard } from '../../src/reconciler/board.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { publish } from './support/board-fixture.ts';
import { CHAT, chatBody, errorOf, post } from './support/client.ts';
import { startUpstream } from './support/fake-upstream.ts';
import { GGUF_PROVIDERS } from './support/gateway-provider.ts';

const unused = (): never => {
  throw new Error('A chat needs no extension');
};
const NONE: Extensions = { scanBody: () => undefined, openSpool: unused, translate: unused };

test('has no timer left once it is closed', async () => {
  jest.useFakeTimers();
  try {
    const parsed = parseSettings({});
    if (!parsed.ok) throw new Error(parsed.problems.join('; '));
    const { settings } = parsed;
    const board = createBoard();
    const now = (): number => performance.now();
    const deps = { board, providers: GGUF_PROVIDERS, traffic: createTraffic({ board, now, settings }), settings, now };
    const before = jest.getTimerCount();
    const gateway = createPlainGateway({ ...deps, report: () => undefined, extensions: NONE });
    expect(jest.getTimerCount()).toBeGreaterThan(before);
    await gateway.close(0);
    expect(jest.getTimerCount()).toBe(before);
  } finally {
    jest.useRealTimers();
  }
});

test('forwards a chat, and refuses one of an unknown model', async () => {
  const parsed = parseSettings({});
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const { settings } = parsed;
  const board = createBoard();
  const now = (): number => performance.now();
  const finished: FinishedRequest[] = [];
  const gateway = createPlainGateway({
    board,
    providers: GGUF_PROVIDERS,
    traffic: createTraffic({ board, now, settings }),
    settings,
    now,
    report: (request) => void finished.push(request),
    extensions: NONE,
  });
  const path = { path: CHAT, capability: 'chat', summary: '' } as const;
  const server = createServer((req, res) => gateway.handle({ req, res, path, head: parseRequestHead(req.rawHeaders), requestId: 'r1' }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const upstream = await startUpstream({ text: 'Hello' });
  try {
    publish(board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
    expect(await post(port, CHAT, chatBody())).toMatchObject({ status: 200, text: expect.stringContaining('Hello') });
    const unknown = await post(port, CHAT, '{"model":"none"}');
    expect([unknown.status, errorOf(unknown.text).message]).toEqual([
      404,
      expect.stringContaining('Model "none" does not exist; models for chat: "primary"'),
    ]);
    expect(finished.map(({ status }) => status)).toEqual([200, 404]);
    expect(gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0 });
  } finally {
    await gateway.close(0);
    await upstream.kill();
    server.closeAllConnections();
    server.close();
  }
});
