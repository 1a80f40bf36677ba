import { expect, test } from '@jest/globals';
import { FastResponse } from '../../../src/turbo/fast-path/fast-response.ts';
import { MemorySocket } from './support/memory-socket.ts';

test('a body without a head is refused, so that no client can read it as another answer, and an answer is still possible', () => {
  const socket = new MemorySocket();
  const response = new FastResponse({ socket, date: () => 'now', keepAliveSeconds: 75, onSent: () => undefined });
  expect(() => response.end('a')).toThrow('Send the head of an answer before its body');
  expect(() => response.write('a')).toThrow('Send the head of an answer before its body');
  response.writeHead(500, { 'content-length': 0 });
  response.end();
  expect(socket.sent).toMatch(/^HTTP\/1\.1 500 /);
  socket.destroy();
});

test('text is sent in the encoding that it is given, with its head or after it, and the answer closes once', async () => {
  const socket = new MemorySocket();
  const response = new FastResponse({ socket, date: () => 'now', keepAliveSeconds: 75, onSent: () => undefined });
  let closed = 0;
  response.on('close', () => (closed += 1));
  response.writeHead(200, { 'content-length': 3 });
  response.write('\u00e9', 'latin1');
  await new Promise<void>((resolve) => {
    response.on('finish', () => resolve());
    response.end('\u00e9\u00e8', 'latin1');
  });
  expect(socket.sent).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n\u00e9\u00e9\u00e8$/);
  response.onClose();
  expect(closed).toBe(1);
  socket.destroy();
});
