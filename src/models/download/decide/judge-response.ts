/** Judges whether a response is the requested part of a file. The checksum has the last word. Pure. */

export interface ExpectedBytes {
  readonly url: string;
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly from: number;
  readonly etag?: string | undefined;
  /** Set for a rolling source, whose file the publisher may replace. */
  readonly others?: readonly unknown[] | undefined;
}

/** What a server says of a file before it is downloaded. */
export interface StatedFile {
  readonly sizeBytes?: number | undefined;
  readonly sha256?: string | undefined;
}

type Response = Readonly<{ status: number; headers: Headers; firstHeaders: Headers }>;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type ResponseVerdict =
  /** `whole`: the response is the complete file, whatever was requested. */
  | { readonly kind: 'accept'; readonly whole: boolean; readonly etag: string | undefined }
  | { readonly kind: 'restart'; readonly message: string }
  | { readonly kind: 'other-file'; readonly message: string; readonly stated: StatedFile }
  /** The response is useless; a later one may not be. */
  | { readonly kind: 'broken'; readonly message: string }
  | { readonly kind: 'refused' };

export function judgeResponse({ status, headers, firstHeaders }: Response, expected: ExpectedBytes): ResponseVerdict {
  const { url, from, sizeBytes } = expected;
  if (status !== 200 && status !== 206) return status === 416 ? cannotResume(url) : { kind: 'refused' };
  const sizeStated = status === 206 ? totalOf(headers) : header(headers, 'content-length');
  const stated = { sizeBytes: sizeStated === undefined ? undefined : Number(sizeStated), sha256: hubHash(firstHeaders) };
  const isRolling = expected.others !== undefined;
  if (differs(stated, expected, isRolling) && !isPage(headers)) {
    const message = isRolling ? replacedMessage({ headers, ...stated }, expected) : hashMessage(stated, expected);
    return { kind: 'other-file', message, stated };
  }
  const encoding = header(headers, 'content-encoding') ?? 'identity';
  if (encoding !== 'identity') return { kind: 'broken', message: `The server sent "${url}" as "${encoding}" instead of unchanged` };
  // Behind a redirect of the Hub, each server may have its own ETag; the checksum was compared above.
  const etag = header(firstHeaders, 'x-linked-etag') === undefined ? header(headers, 'etag') : undefined;
  const changed = etag !== undefined && expected.etag !== undefined && etag !== expected.etag;
  if (changed) return { kind: 'restart', message: `The file "${url}" changed on its server during the download` };
  if (status === 206) {
    const range = /^bytes ([0-9]+)-[0-9]+\/(?:[0-9]+|\*)$/.exec(header(headers, 'content-range') ?? '');
    if (Number(range?.[1]) !== from) return cannotResume(url);
    const total = totalOf(headers);
    if (total !== undefined && Number(total) !== sizeBytes) return wrongSize(expected, total);
    return { kind: 'accept', whole: false, etag };
  }
  const length = header(headers, 'content-length');
  if (length !== undefined && Number(length) !== sizeBytes) return wrongSize(expected, length);
  return from === 0 ? { kind: 'accept', whole: true, etag } : cannotResume(url);
}

/** The Hub sends the SHA-256 of a large file as `X-Linked-Etag`. */
export function hubHash(headers: Headers): string | undefined {
  const etag = header(headers, 'x-linked-etag')?.replace(/^W\//, '').replaceAll('"', '').toLowerCase();
  return etag !== undefined && /^[0-9a-f]{64}$/.test(etag) ? etag : undefined;
}

const totalOf = (headers: Headers): string | undefined => /\/([0-9]+)$/.exec(header(headers, 'content-range') ?? '')?.[1];

/** A login page of a network in front of the server is not the file. */
const isPage = (headers: Headers): boolean => /^text\/html\b/i.test(header(headers, 'content-type') ?? '');

/** The size counts at a rolling source only: elsewhere, the response is broken. */
function differs(stated: StatedFile, { sha256, sizeBytes }: ExpectedBytes, isRolling: boolean): boolean {
  if (stated.sha256 !== undefined && sha256 !== '' && stated.sha256 !== sha256.toLowerCase()) return true;
  return isRolling && stated.sizeBytes !== undefined && stated.sizeBytes !== sizeBytes;
}

const hashMessage = (stated: StatedFile, { url, sha256 }: ExpectedBytes): string =>
  `The server has another file at "${url}": its SHA-256 is "${stated.sha256}", not "${sha256}"`;

/** Completed by what to do about it. */
export function replacedMessage({ headers = {}, ...stated }: StatedFile & { readonly headers?: Headers }, expected: ExpectedBytes): string {
  const published = header(headers, 'last-modified');
  const facts = [
    stated.sizeBytes === undefined ? undefined : `${stated.sizeBytes} bytes instead of ${expected.sizeBytes}`,
    stated.sha256 === undefined ? undefined : `SHA-256 "${stated.sha256}" instead of "${expected.sha256}"`,
    published !== undefined && Number.isFinite(Date.parse(published))
      ? `published on ${new Date(published).toISOString().slice(0, 10)}`
      : undefined,
  ];
  return `Upstream has published another file at "${expected.url}": ${facts.filter((fact) => fact !== undefined).join(', ')}`;
}

function wrongSize({ url, sizeBytes }: ExpectedBytes, size: string): ResponseVerdict {
  return { kind: 'broken', message: `The server has ${size} bytes at "${url}" instead of ${sizeBytes}` };
}

const cannotResume = (url: string): ResponseVerdict => ({ kind: 'restart', message: `The server cannot resume the download of "${url}"` });

function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}
