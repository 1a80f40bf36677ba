import { createServer, request, type Server } from 'node:http';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createConnection, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLocalSocket, type LocalSocket } from '../../../src/api/server/local-socket.ts';

let directory: string;
let path: string;
let local: LocalSocket;
let server: Server;
let port: number;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-socket-'));
  path = join(directory, 'api.sock');
  local = createLocalSocket();
  server = createServer((req, res) => res.end(String(local.isLocal(req.socket))));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await local.close();
  await rm(directory, { recursive: true, force: true });
});

const ask = async (target: { readonly socketPath: string } | { readonly port: number }): Promise<string> =>
  await new Promise((resolve, reject) => {
    const sent = request({ ...target, path: '/' }, (response) => {
      response.setEncoding('utf8');
      response.on('data', resolve);
    });
    sent.on('error', reject);
    sent.end();
  });

describe('The socket of the service', () => {
  test('belongs to its user alone, and tells its connections from all others', async () => {
    await local.listen(path, server);
    const facts = await stat(path);
    expect([facts.isSocket(), facts.mode & 0o777, facts.uid]).toEqual([true, 0o600, process.getuid?.()]);
    expect(await readdir(directory)).toEqual(['api.sock']);
    expect([await ask({ socketPath: path }), await ask({ port })]).toEqual(['true', 'false']);
  });

  test('replaces what an earlier process left behind, whether it is a socket or a file', async () => {
    const dead = createNetServer();
    await new Promise<void>((resolve) => dead.listen(path, resolve));
    await local.listen(path, server);
    expect(await ask({ socketPath: path })).toBe('true');
    await local.close();
    await writeFile(path, '');
    await local.listen(path, server);
    expect(await ask({ socketPath: path })).toBe('true');
    dead.close();
  });

  test('is removed at the end, and its connections close with those of the HTTP server', async () => {
    await local.listen(path, server);
    const idle = createConnection(path);
    await new Promise((resolve) => idle.once('connect', resolve));
    expect(await ask({ socketPath: path })).toBe('true');
    const closed = local.close();
    server.closeAllConnections();
    await closed;
    expect(await readdir(directory)).toEqual([]);
    idle.destroy();
  });

  test('is not created, and leaves nothing behind, where its path is too long for the system', async () => {
    const deep = join(directory, 'd'.repeat(100));
    await mkdir(deep);
    await expect(local.listen(join(deep, 'api.sock'), server)).rejects.toThrow('longer than 107 bytes');
    expect(await readdir(deep)).toEqual([]);
  });
});
