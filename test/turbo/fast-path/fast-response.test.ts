import { describe, expect, test } from '@jest/globals';
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

describe('The head of an answer as text', () => {
  const HEADERS = ['Server', 'llama.cpp', 'content-length', '2', 'x-request-id', 'req_1'];
  const LINES = 'Server: llama.cpp\r\ncontent-length: 2\r\nx-request-id: req_1\r\n';
  const send = (write: (response: FastResponse) => void, keepAlive = true): string => {
    const socket = new MemorySocket();
    const response = new FastResponse({ socket, date: () => 'now', keepAliveSeconds: 75, onSent: () => undefined });
    response.shouldKeepAlive = keepAlive;
    write(response);
    response.end('{}');
    socket.destroy();
    return socket.sent;
  };

  test.each([
    [200, true],
    [200, false],
    [204, true],
    [404, true],
    [599, true],
  ])('sends the bytes that the list sends: status %i, connection kept: %s', (status, keepAlive) => {
    const asText = send((response) => expect(response.writeText(status, { lines: LINES, hasDate: false })).toBe(true), keepAlive);
    expect(asText).toBe(send((response) => response.writeHead(status, HEADERS), keepAlive));
    expect(asText).toContain(`Date: now\r\nConnection: ${keepAlive ? 'keep-alive' : 'close'}\r\n`);
  });

  test('has the date of the upstream, if there is one', () => {
    const lines = `Date: then\r\n${LINES}`;
    expect(send((response) => response.writeText(200, { lines, hasDate: true }))).toBe(
      send((response) => response.writeHead(200, ['Date', 'then', ...HEADERS])),
    );
  });

  test('is refused where other headers were set, which the list may replace, and where a head was written', () => {
    const sent = send((response) => {
      response.setHeader('Vary', 'Origin');
      expect(response.writeText(200, { lines: LINES, hasDate: false })).toBe(false);
      response.writeHead(200, HEADERS);
      expect(response.writeText(404, { lines: LINES, hasDate: false })).toBe(false);
    });
    expect(sent).toMatch(/^HTTP\/1\.1 200 OK\r\nVary: Origin\r\nServer: llama\.cpp\r\n[^]*\r\n\r\n\{\}$/);
  });
});
