/** Whether a response is the part of the file that was asked for. Pure: it sees only status and headers, which may lie; the hash has the last word. */

export interface ExpectedBytes {
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** Offset of the first byte that was asked for. */
  readonly from: number;
  /** The `ETag` of an earlier response for the same file. */
  readonly etag?: string | undefined;
}

interface Response {
  readonly status: number;
  readonly headers: Headers;
  readonly firstHeaders: Headers;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type ResponseVerdict =
  /** `whole`: the response is the complete file, whatever was asked for. */
  | { readonly kind: 'accept'; readonly whole: boolean; readonly etag: string | undefined }
  /** What is there already cannot be continued. */
  | { readonly kind: 'restart'; readonly message: string }
  /** The server has another file: its size or its hash differs. */
  | { readonly kind: 'other-file'; readonly message: string }
  /** The response is of no use now; a later one may be. */
  | { readonly kind: 'broken'; readonly message: string }
  /** The status says that there is no file. */
  | { readonly kind: 'refused' };

export function judgeResponse({ status, headers, firstHeaders }: Response, expected: ExpectedBytes): ResponseVerdict {
  const { url, from, sizeBytes } = expected;
  if (status !== 200 && status !== 206) return status === 416 ? cannotResume(url) : { kind: 'refused' };
  const other = otherFile(firstHeaders, expected);
  if (other !== undefined) return { kind: 'other-file', message: other };
  const encoding = header(headers, 'content-encoding') ?? 'identity';
  if (encoding !== 'identity') return { kind: 'broken', message: `The server sent "${url}" as "${encoding}" instead of unchanged` };
  // Behind a redirect of the Hub, each server may have its own ETag; the hash of the file was compared above.
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

/** The Hub names hash and size of a large file: `X-Linked-Etag` is its SHA-256. */
function otherFile(headers: Headers, { url, sha256 }: ExpectedBytes): string | undefined {
  const etag = header(headers, 'x-linked-etag')?.replace(/^W\//, '').replaceAll('"', '').toLowerCase();
  if (etag === undefined || !/^[0-9a-f]{64}$/.test(etag) || etag === sha256.toLowerCase()) return undefined;
  return `The server has another file at "${url}": its SHA-256 is "${etag}", not "${sha256}"`;
}

function wrongSize({ url, sizeBytes }: ExpectedBytes, size: string): ResponseVerdict {
  return { kind: 'broken', message: `The server has ${size} bytes at "${url}" instead of ${sizeBytes}` };
}

function cannotResume(url: string): ResponseVerdict {
  return { kind: 'restart', message: `The server cannot resume the download of "${url}"` };
}

function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}
