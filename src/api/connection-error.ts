/** Answers a request that cannot be read, in the documented shape, and closes its connection. */
import type { Duplex } from 'node:stream';
import type { Settings } from '../schema/settings/settings.ts';
import { writeError } from './write-error.ts';

/** Node's code for a request that was not complete in time. */
export const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

interface BrokenRequest {
  readonly socket: Duplex;
  /** An answer to it has begun. */
  readonly headersSent: boolean;
}

/** `code`: Node's, of the error that its parser found; undefined for a request that is not well-formed. */
export function answerClientError(
  code: string | undefined,
  { socket, headersSent }: BrokenRequest,
  limits: Pick<Settings, 'SVC_HEADER_LIMIT'>,
): void {
  // While a response is in progress on this connection, another one would be read as a part of it.
  if (code === 'ECONNRESET' || !socket.writable || headersSent) {
    socket.destroy();
    return;
  }
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      writeError(
        socket,
        'request.headers_too_large',
        `Send smaller headers: the limit is ${limits.SVC_HEADER_LIMIT} bytes ("SVC_HEADER_LIMIT")`,
      );
      return;
    case REQUEST_TIMEOUT:
      writeError(socket, 'request.timeout', 'Send the complete request sooner: it timed out');
      return;
    default:
      writeError(socket, 'request.invalid', 'Send a well-formed HTTP/1.1 request');
  }
}

export function refuseConnection(socket: Duplex, { SVC_MAX_CONNECTIONS: most }: Pick<Settings, 'SVC_MAX_CONNECTIONS'>): void {
  writeError(socket, 'server.overloaded', `Try again later: ${most} connections are open ("SVC_MAX_CONNECTIONS")`);
}
