/**
 * The wing's part of the HTTP server: the fast path (`SVC_FAST_PATH`), and requests that free their memory once read.
 */
import { IncomingMessage } from 'node:http';
import type { Accelerator } from '../api/server/http-server.ts';
import type { ClientRequest } from '../gateway/client-exchange.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { readFast } from './fast-path/fast-path.ts';

export function createAccelerator({ SVC_FAST_PATH: isFast }: Pick<Settings, 'SVC_FAST_PATH'>): Accelerator {
  return { Request: FreeingRequest, ...(isFast ? { readConnections: readFast } : {}) };
}

/** Node's parser gives each piece of a body its own memory. Larger memory holds other bytes too, and stays. */
export class FreeingRequest extends IncomingMessage implements ClientRequest {
  free({ buffer, byteLength }: Buffer): void {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0);
  }
}
