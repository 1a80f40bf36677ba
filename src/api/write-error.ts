/** Writes an error in the documented shape to a connection that has no answer of an HTTP server, and closes it. */
import type { Duplex } from 'node:stream';
import { errorAnswer } from '../gateway/decide/error-answer.ts';
import { ERROR_CODES, type ErrorCode } from '../schema/words/error-codes.ts';
import { newRequestId } from './request-id.ts';

interface ErrorOptions {
  /** Default: a new one. */
  readonly requestId?: string;
  readonly param?: string | null;
}

export function writeError(socket: Duplex, code: ErrorCode, message: string, options: ErrorOptions = {}): void {
  const { requestId = newRequestId(), param = null } = options;
  const { status, headers, body } = errorAnswer(code, message, { requestId, param });
  const allow = code === 'route.method' ? { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } : {};
  const own = { 'content-length': Buffer.byteLength(body), connection: 'close', date: new Date().toUTCString() };
  const lines = Object.entries({ ...headers, ...allow, ...own }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${ERROR_CODES[code].type}\r\n${lines.join('')}\r\n${body}`, () => socket.destroy());
}
