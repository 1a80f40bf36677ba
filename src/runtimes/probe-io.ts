/** The I/O of health probes: one bounded exchange, on a connection of its own. */
import { Agent, request } from 'undici';
import type { ProbeIo } from '../reconciler/ports.ts';
import { codeOf, messageOf, nameOf } from './foreign-error.ts';

/** A probe's answer is short; of a longer one the beginning tells enough. */
const BODY_LIMIT_BYTES = 64 * 1024;

export function createProbeIo(): ProbeIo {
  // No connection is kept: one that was opened to the process before must not answer for the present one.
  const dispatcher = new Agent({ pipelining: 0 });
  return {
    async request({ host, port }, { method, path, body, timeoutMs, signal }) {
      try {
        const answer = await request(`http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`, {
          dispatcher,
          method,
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
          ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
        });
        return { status: answer.statusCode, body: await beginningOf(answer.body) };
      } catch (error) {
        return { status: 0, body: '', error: describe(error, timeoutMs) };
      }
    },
  };
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
