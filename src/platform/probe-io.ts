/** The I/O of health probes: one bounded exchange on its own connection. It uses Node's HTTP client because undici costs an idle service 25 MB. */
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import type { ProbeIo } from '../reconciler/ports.ts';
import { codeOf, messageOf, nameOf } from './error-text.ts';
import { readBeginning } from './read-body.ts';

/** A probe's response is short; the beginning of a longer one is enough. */
const BODY_LIMIT_BYTES = 64 * 1024;

export function createProbeIo(): ProbeIo {
  return {
    async request({ host, port }, { method, path, body, contentType = 'application/json', timeoutMs, signal }) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const headers = body === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(body) };
      try {
        // Connections are not reused: one to an earlier process must not answer for the present one.
        const response = await exchange({ host, port, method, path, headers, agent: false, signal: limited }, body);
        return { status: response.statusCode ?? 0, body: (await readBeginning(response, BODY_LIMIT_BYTES)).toString('utf8') };
      } catch (error) {
        return { status: 0, body: '', error: describeError(limited.aborted ? limited.reason : error, timeoutMs) };
      }
    },
  };
}

function exchange(options: RequestOptions, body: string | Uint8Array | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(options, resolve);
    sent.once('error', reject);
    sent.end(body);
  });
}

function describeError(error: unknown, timeoutMs: number): string {
  if (nameOf(error) === 'TimeoutError') return `No answer within ${timeoutMs} ms`;
  if (codeOf(error) === 'ECONNREFUSED') return 'Connection refused: the server is not listening yet';
  return messageOf(error);
}
