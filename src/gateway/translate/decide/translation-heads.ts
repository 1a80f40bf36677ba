/** Checks the heads that a translation wrote, because parts of them may come from a client. Pure. */
import type { Endpoint } from '../../../providers/provider.ts';
import type { AnswerHead, UpstreamHead, UpstreamRequest } from '../../../providers/translation.ts';
import { authorityOf } from '../../route/decide/route.ts';
import type { BodyFraming, ResponseHead } from '../../upstream/decide/response-head.ts';

const PATH = /^\/[\x21-\x7e]*$/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** The gateway writes these itself. */
const OWN: ReadonlySet<string> = new Set(
  'host connection content-length transfer-encoding upgrade expect keep-alive x-request-id set-cookie'.split(' '),
);

/** Returns the path and query of a request. Throws if it is malformed. */
export function checkedPath(path: string): string {
  if (PATH.test(path)) return path;
  throw new TypeError(`The path of a request is not visible ASCII: ${JSON.stringify(path.slice(0, 200))}`);
}

/** Returns the head of a request with its empty line. `bodyBytes` undefined: no body. Throws if it is malformed. */
export function requestHeadOf(
  request: UpstreamRequest,
  {
    endpoint,
    requestId,
    traceLines = '',
    bodyBytes,
  }: { readonly endpoint: Endpoint; readonly requestId: string; readonly traceLines?: string; readonly bodyBytes: number | undefined },
): string {
  const { method, path, headers = {} } = request;
  const lines = checkedHeaders(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = bodyBytes === undefined ? '' : `content-length: ${bodyBytes}\r\n`;
  return `${method} ${checkedPath(path)} HTTP/1.1\r\nhost: ${authorityOf(endpoint)}\r\n${lines.join('')}${traceLines}x-request-id: ${requestId}\r\n${length}\r\n`;
}

/** Throws if a part of it is malformed. */
export function responseHeadOf({ status, contentType, headers = {} }: AnswerHead, bodyBytes: number | undefined): ResponseHead {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`The status of an answer is not from 200 to 599: ${status}`);
  const lines = checkedHeaders({ ...headers, 'content-type': contentType }).flat();
  const framing: BodyFraming = bodyBytes === undefined ? { kind: 'chunked' } : { kind: 'length', bytes: bodyBytes };
  return { status, headers: lines, contentType, framing, keepAlive: true, keepAliveSeconds: undefined };
}

export function upstreamHeadOf({ status, headers }: ResponseHead): UpstreamHead {
  const named = new Map<string, string>();
  for (let index = 0; index < headers.length; index += 2) named.set((headers[index] ?? '').toLowerCase(), headers[index + 1] ?? '');
  return { status, headers: named };
}

function checkedHeaders(headers: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => {
    if (!NAME.test(name) || !VALUE.test(value) || OWN.has(name.toLowerCase()))
      throw new TypeError(`A header is reserved or not ASCII: ${JSON.stringify(`${name}: ${value}`.slice(0, 200))}`);
    return [name, value];
  });
}
