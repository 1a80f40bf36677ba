/** The I/O of health probes: one bounded exchange, on a connection of its own. Node's own client: undici costs 25 MB that a service at rest can do without. */
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import type { ProbeIo } from '../reconciler/ports.ts';
import { codeOf, messageOf, nameOf } from './error-text.ts';

/** A probe's answer is short; of a longer one the beginning tells enough. */
const BODY_LIMIT_BYTES = 64 * 1024;

export function createProbeIo(): ProbeIo {
  return {
    async request({ host, port }, { method, path, body, timeoutMs, signal }) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      try {
        // No connection is kept: one that was opened to the process before must not answer for the present one.
        const answer = await exchange({ host, port, method, path, headers, agent: false, signal: limited }, body);
        return { status: answer.statusCode ?? 0, body: await beginningOf(answer) };
      } catch (error) {
        return { status: 0, body: '', error: describe(limited.aborted ? limited.reason : error, timeoutMs) };
      }
    },
  };
}

function exchange(options: RequestOptions, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request(options, resolve);
    asked.once('error', reject);
    asked.end(body);
  });
}

async function beginningOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= BODY_LIMIT_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, BODY_LIMIT_BYTES).toString('utf8');
}

function describe(error: unknown, timeoutMs: number): string {
  if (nameOf(error) === 'TimeoutError') return `No answer within ${timeoutMs} ms`;
  if (codeOf(error) === 'ECONNREFUSED') return 'Nothing listens there yet';
  return messageOf(error);
}
