import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Agent, request } from 'undici';
import { bodyChunks, createReadMemory, type ReadMemory } from '../../../src/models/download/transfer-body.ts';
import { virtualFile } from '../../support/hub/virtual-file.ts';

const file = virtualFile(24 * 2 ** 20 + 77);
const content = file.read(0, file.sizeBytes);

let server: Server;
let memory: ReadMemory;
let agent: Agent;
beforeEach(async () => {
  server = createServer((_request, response) => response.end(content));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  memory = createReadMemory();
  agent = new Agent({ connect: memory.connect });
});
afterEach(async () => {
  await agent.destroy();
  server.closeAllConnections();
  server.close();
});

async function open() {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return (await request(`http://127.0.0.1:${port}/`, { dispatcher: agent })).body;
}

test('what was not released keeps its content, however much is received after it', async () => {
  const kept: Buffer[] = [];
  for await (const chunk of bodyChunks(await open())) kept.push(chunk);
  expect(Buffer.compare(Buffer.concat(kept), content)).toBe(0);
});

test('a piece that is released late, as after a slow write, has its content until then, and its memory is used again', async () => {
  const seen = new Set<ArrayBufferLike>();
  let at = 0;
  const late: Buffer[] = [];
  const write = (): void => {
    const piece = late.shift();
    if (piece === undefined) return;
    expect(Buffer.compare(piece, content.subarray(at, at + piece.length))).toBe(0);
    at += piece.length;
    memory.release(piece);
  };
  for await (const chunk of bodyChunks(await open())) {
    seen.add(chunk.buffer);
    late.push(chunk);
    if (late.length > 6) write();
  }
  while (late.length > 0) write();
  expect(at).toBe(content.length);
  expect([...seen].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThanOrEqual(8 * 2 ** 20);
});

test('released memory is used again, over several requests of one connection', async () => {
  const seen = new Set<ArrayBufferLike>();
  for (let round = 0; round < 3; round += 1) {
    for await (const chunk of bodyChunks(await open())) {
      seen.add(chunk.buffer);
      memory.release(chunk);
    }
  }
  const bytes = [...seen].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(bytes).toBeLessThanOrEqual(6 * 2 ** 20);
});

test('a piece in other memory is ignored', () => {
  expect(() => memory.release(Buffer.from('other'))).not.toThrow();
});

test('what was received before a connection breaks is yielded before the error', async () => {
  server.removeAllListeners('request').on('request', (_request, response) => {
    response.writeHead(200, { 'content-length': content.length });
    response.write(content.subarray(0, 3_000_000), () => setTimeout(() => response.destroy(), 50));
  });
  let bytes = 0;
  const reading = async (): Promise<void> => {
    for await (const chunk of bodyChunks(await open())) bytes += chunk.length;
  };
  await expect(reading()).rejects.toThrow();
  expect(bytes).toBe(3_000_000);
});
