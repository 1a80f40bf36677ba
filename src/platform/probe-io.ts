/**
 * The I/O of health probes: one bounded exchange on its own connection. It uses Node's HTTP client because undici costs
 * an idle service 25 MB, and one timer and one listener for each exchange, because composed signals cost as much as the
 * exchange itself: with 2,000 slots there are four thousand exchanges a minute.
 */
import { request, type RequestOptions } from 'node:http';
import type { ProbeIo } from '../providers/provider.ts';
import { codeOf, messageOf } from './error-text.ts';
import { readBeginning } from './read-body.ts';

/** A probe's response is short; the beginning of a longer one is enough. */
const BODY_LIMIT_BYTES = 64 * 1024;

type ProbeResponse = Awaited<ReturnType<ProbeIo['request']>>;

/** Its runtime watches a server elsewhere, and takes its endpoint away while it does not answer. */
const WATCHED: ProbeResponse = { status: 200, body: '' };

export function createProbeIo(): ProbeIo {
  return {
    async request(
      { host, port, link },
      { method, path, body, contentType = 'application/json', mostBytes = BODY_LIMIT_BYTES, timeoutMs, signal },
    ) {
      if (link !== undefined) return WATCHED;
      const headers = body === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(body) };
      // Connections are not reused: one to an earlier process must not answer for the present one.
      const exchange = begin({ host, port, method, path, headers, agent: false }, body, mostBytes);
      let timedOut = false;
      const timer = setTimeout(() => {
        timedOut = true;
        exchange.end();
      }, timeoutMs);
      signal.addEventListener('abort', exchange.end, { once: true });
      if (signal.aborted) exchange.end();
      try {
        return await exchange.response;
      } catch (error) {
        return { status: 0, body: '', error: timedOut ? `No answer within ${timeoutMs} ms` : describeError(error) };
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', exchange.end);
      }
    },
  };
}

/** `end` closes the connection, whatever has come of the response. */
function begin(
  options: RequestOptions,
  body: string | Uint8Array | undefined,
  mostBytes: number,
): { readonly response: Promise<ProbeResponse>; readonly end: () => void } {
  const sent = request(options);
  const response = new Promise<ProbeResponse>((resolve, reject) => {
    sent.on('error', reject);
    sent.once('response', (answer) => {
      const status = answer.statusCode ?? 0;
      readBeginning(answer, mostBytes).then((bytes) => resolve({ status, body: bytes.toString('utf8') }), reject);
    });
  });
  sent.end(body);
  return { response, end: () => void sent.destroy() };
}

function describeError(error: unknown): string {
  if (codeOf(error) === 'ECONNREFUSED') return 'Connection refused: the server is not listening yet';
  return messageOf(error);
}
