/** Writes answers: JSON, events, and parts of a stream as fast as the client reads them. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { errorBody, type Refusal } from './decide/refusal.ts';

export function sendJson(response: ServerResponse, status: number, body: object): void {
  sendText(response, status, { contentType: 'application/json; charset=utf-8', body: JSON.stringify(body) });
}

/** `seconds`: length of the recording, for the gateway that counts it. */
export function sendText(
  response: ServerResponse,
  status: number,
  { contentType, body, seconds }: { contentType: string; body: string; seconds?: number },
): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.from(body);
  const told = seconds === undefined ? {} : { 'x-svc-audio-seconds': seconds };
  response.writeHead(status, { 'content-type': contentType, 'content-length': bytes.length, ...told });
  response.end(bytes);
}

/** Within a stream, an error can only be an event, or the end of the connection. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  if (response.destroyed) return;
  if (response.headersSent) {
    if (String(response.getHeader('content-type')).startsWith('text/event-stream'))
      response.end(`data: ${JSON.stringify(errorBody(refusal))}\n\n`);
    else response.destroy();
    return;
  }
  if (refusal.retryAfter !== undefined) response.setHeader('retry-after', refusal.retryAfter);
  // What is left of a body is not worth reading.
  if (!response.req.complete) response.setHeader('connection', 'close');
  sendJson(response, refusal.status, errorBody(refusal));
}

export function beginStream(response: ServerResponse, contentType: string): void {
  if (response.headersSent) return;
  // `sendRefusal()` reads it, which it could not if `writeHead()` got it.
  response.setHeader('content-type', contentType);
  response.writeHead(200, { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
}

/** Waits until the client has read enough. */
export async function writePart(response: ServerResponse, part: string | Uint8Array, signal: AbortSignal): Promise<void> {
  if (response.destroyed || signal.aborted) return;
  if (!response.write(part)) await once(response, 'drain', { signal });
}

export const eventText = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
