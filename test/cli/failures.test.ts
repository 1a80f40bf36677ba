import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EMPTY_BOARD } from '../../src/reconciler/board.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { svcctl } from './run-svcctl.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  // A first pass has found no slots.
  world.board.publish({ ...EMPTY_BOARD, version: 1 });
});
afterAll(() => world.close());

describe('svcctl exits 64 for wrong usage', () => {
  test.each([
    [['bogus']],
    [['get', 'nothing']],
    [['get', 'slots', '-o', 'xml']],
    [['slot', 'load', 'Not A Name']],
    [['wait', 'slot/a', '--for', 'state=sleeping']],
    [['wait', 'slot/a', '--for', 'condition=Ready', '--timeout', 'soon']],
    [['slot', 'create', 'a']],
    [['get', 'slots', '--server', 'nonsense']],
    [['get', 'slots', '--server', 'http://me:secret@127.0.0.1:1']],
    [['completion', 'tcsh']],
  ])('%j', async (args) => {
    const { code, out, err } = await svcctl(args);
    expect(code).toBe(64);
    expect(out).toBe('');
    expect(err).toMatch(/^error: .+/);
    expect(err).not.toContain('secret');
  });
});

describe('svcctl exits 1 with one clear line and a hint', () => {
  test('if nothing listens', async () => {
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const server = urlOf(gone);
    gone.close();
    const { code, err } = await svcctl(['get', 'slots', '--server', server]);
    expect(code).toBe(1);
    expect(err).toBe(
      `error: Could not reach the service at "${server}": connection refused\n` +
        'hint: Start it with "svcctl serve", or set its URL with --server or SVCCTL_SERVER\n',
    );
  });

  test('for an error of the API', async () => {
    const { code, err } = await svcctl(['slot', 'unload', 'nope', '--server', world.url]);
    expect({ code, err }).toEqual({
      code: 1,
      err: 'error: There is no slot "nope"; no slot is configured (slot.not_found)\nhint: List the slots with "svcctl get slots"\n',
    });
  });

  test('if another program listens', async () => {
    const other = createServer((_request, response) => response.end('<html>hello</html>')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const server = urlOf(other);
    const { code, err } = await svcctl(['get', 'models', '--server', server]);
    other.closeAllConnections();
    other.close();
    expect(code).toBe(1);
    expect(err).toContain(`Could not read the answer from "${server}": it is not JSON`);
  });
});

test('svcctl get slots -o wide shows replicas only if the service reports them', async () => {
  const slot = (name: string, more: object) => {
    const status = { state: 'ready', conditions: [], observed_generation: 1, restarts: 0, ...more };
    return { name, spec: { replicas: 3 }, status, generation: 1 };
  };
  const answers = new Map<string, unknown>([['/api/status', { version: '1', runtime: 'kube', uptime_seconds: 1, slots: [] }]]);
  const other = createServer((request, response) => response.end(JSON.stringify(answers.get(request.url ?? '')))).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const get = async (...slots: object[]) => {
    answers.set('/api/slots?limit=500', { slots });
    return (await svcctl(['get', 'slots', '-o', 'wide', '--server', urlOf(other)])).out;
  };
  const out = await get(slot('a', { replicas: { present: 3, ready: 1 } }), slot('b', { replicas: null }));
  expect(out).toMatch(/REPLICAS[^]*a +ready .* 1\/3 [^]*b +ready /);
  expect(await get(slot('b', {}))).not.toContain('REPLICAS');
  other.closeAllConnections();
  other.close();
});

describe('how svcctl finds the service', () => {
  test('by SVC_LISTEN, where the wildcard address means this host', async () => {
    const { port } = new URL(world.url);
    expect(await svcctl(['get', 'slots'], { env: { SVC_LISTEN: `0.0.0.0:${port}` } })).toMatchObject({ code: 0 });
  });

  test('sends a token from the environment, never from an argument', async () => {
    const seen: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end(
        '{"error":{"message":"Send a valid token","type":"authentication_error","param":null,"code":"auth.invalid","origin":"gateway"}}',
      );
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const server = urlOf(other);
    const { code, err } = await svcctl(['get', 'models', '--server', server], { env: { SVCCTL_TOKEN: 'svc_0a1b2c3d.hidden\n' } });
    other.closeAllConnections();
    other.close();
    expect(seen).toEqual(['Bearer svc_0a1b2c3d.hidden']);
    expect(code).toBe(1);
    expect(err).toContain('error: Send a valid token (auth.invalid)');
    expect(err).not.toContain('hidden');
  });
});

function urlOf(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
}
