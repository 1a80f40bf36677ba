/** The request id in answers, logs and the upstream's log: the client's own if it is well-formed, else a new one. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseRequestHead } from '../gateway/decide/request-head.ts';

export function requestIdOf(req: IncomingMessage): string {
  return parseRequestHead(req.rawHeaders).requestId ?? newRequestId();
}

export function newRequestId(): string {
  return `req_${randomUUID()}`;
}
