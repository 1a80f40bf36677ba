/** Judges whether a response is the requested part of a file. The checksum has the last word. Pure. */

export interface ExpectedBytes {
  readonly url: string;
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly from: number;
  readonly etag?: string | undefined;
}

type Response = Readonly<{ status: number; headers: Headers; firstHeaders: Headers }>;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type ResponseVerdict =
  /** `whole`: the response is the complete file, whatever was requested. */
  | { readonly kind: 'accept'; readonly whole: boolean; readonly etag: string | undefined }
  | { readonly kind: 'restart'; readonly message: string }
  | { readonly kind: 'other-file'; readonly message: string }
  /** The response is useless; a later one may not be. */
  | { readonly kind: 'broken'; readonly message: string }
  | { readonly kind: 'refused' };

export function judgeResponse({ status, headers, firstHeaders }: Response, expected: ExpectedBytes): ResponseVerdict {
  const { url, from, sizeBytes } = expected;
  if (status !== 200 && status !== 206) return status === 416 ? cannotResume(url) : { kind: 'refused' };
  const other = otherFile(firstHeaders, expected);
  if (other !== undefined) return { kind: 'other-file', message: other };
  const encoding = header(headers, 'content-encoding') ?? 'identity';
  if (encoding !== 'identity') return { kind: 'broken', message: `The server sent "${url}" as "${encoding}" instead of unchanged` };
  // Behind a redirect of the Hub, each server may have its own ETag; the checksum was compared above.
  const etag = header(firstHeaders, 'x-linked-etag') === undefined ? header(headers, 'etag') : undefined;
  const changed = etag !== undefined && expected.etag !== undefined && etag !== expected.etag;
  if (changed) return { kind: 'restart', message: `The file "${url}" changed on its server during the download` };
  if (status === 206) {
    const range = /^bytes ([0-9]+)-[0-9]+\/(?:([0-9]+)|\*)$/.exec(header(headers, 'content-range') ?? '');
    if (Number(range?.[1]) !== from) return cannotResume(url);
    const total = range?.[2];
    if (total !== undefined && Number(total) !== sizeBytes) return wrongSize(expected, total);
    return { kind: 'accept', whole: false, etag };
  }
  const length = header(headers, 'content-length');
  if (length !== undefined && Number(length) !== sizeBytes) return wrongSize(expected, length);
  return from === 0 ? { kind: 'accept', whole: true, etag } : cannotResume(url);
}

/** The Hub sends the SHA-256 of a large file as `X-Linked-Etag`. */
function otherFile(headers: Headers, { url, sha256 }: ExpectedBytes): string | undefined {
  const etag = header(headers, 'x-linked-etag')?.replace(/^W\//, '').replaceAll('"', '').toLowerCase();
  if (etag === undefined || !/^[0-9a-f]{64}$/.test(etag) || etag === sha256.toLowerCase()) return undefined;
  return `The server has another file at "${url}": its SHA-256 is "${etag}", not "${sha256}"`;
}

function wrongSize({ url, sizeBytes }: ExpectedBytes, size: string): ResponseVerdict {
  return { kind: 'broken', message: `The server has ${size} bytes at "${url}" instead of ${sizeBytes}` };
}

const cannotResume = (url: string): ResponseVerdict => ({ kind: 'restart', message: `The server cannot resume the download of "${url}"` });

function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}
