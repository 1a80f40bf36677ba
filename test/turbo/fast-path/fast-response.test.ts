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
