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
  const encoding = header(headers, 'content-encoding') ?? 'identity';
  if (encoding !== 'identity') return { kind: 'broken', message: `The server sent "${url}" as "${encoding}" instead of unchanged` };
  const size = status === 206 ? /\/([0-9]+)$/.exec(header(headers, 'content-range') ?? '')?.[1] : header(headers, 'content-length');
  const stated = { sizeBytes: size === undefined ? undefined : Number(size), sha256: hubHash(firstHeaders) };
  if (differs(stated, expected) && !isPage(headers))
    return { kind: 'other-file', message: otherFile({ headers, ...stated }, expected), stated };
  // Behind a redirect of the Hub, each server may have its own ETag; the checksum was compared above.
  const etag = header(firstHeaders, 'x-linked-etag') === undefined ? header(headers, 'etag') : undefined;
  const changed = etag !== undefined && expected.etag !== undefined && etag !== expected.etag;
  if (changed) return { kind: 'restart', message: `The file "${url}" changed on its server during the download` };
  const range = /^bytes ([0-9]+)-[0-9]+\/(?:[0-9]+|\*)$/.exec(header(headers, 'content-range') ?? '');
  if (status === 206 && Number(range?.[1]) !== from) return cannotResume(url);
  if (size !== undefined && Number(size) !== sizeBytes) return wrongSize(expected, size);
  return status === 206 || from === 0 ? { kind: 'accept', whole: status === 200, etag } : cannotResume(url);
}

/** The Hub sends the SHA-256 of a large file as `X-Linked-Etag`. */
export function hubHash(headers: Headers): string | undefined {
  const etag = header(headers, 'x-linked-etag')?.replace(/^W\//, '').replaceAll('"', '').toLowerCase();
  return etag !== undefined && /^[0-9a-f]{64}$/.test(etag) ? etag : undefined;
}

/** A login page of a network in front of the server is not the file. */
const isPage = (headers: Headers): boolean => /^text\/html\b/i.test(header(headers, 'content-type') ?? '');

/** The size counts at a rolling source only: elsewhere, the response is broken. */
function differs(stated: StatedFile, { sha256, sizeBytes, others }: ExpectedBytes): boolean {
  if (stated.sha256 !== undefined && sha256 !== '' && stated.sha256 !== sha256.toLowerCase()) return true;
  return others !== undefined && stated.sizeBytes !== undefined && stated.sizeBytes !== sizeBytes;
}

/** Says what is known of the file; what to do about it is for whoever knows the model. */
export function otherFile({ headers = {}, ...stated }: StatedFile & { readonly headers?: Headers }, expected: ExpectedBytes): string {
  const published = Date.parse(header(headers, 'last-modified') ?? '');
  const facts = [
    ...(stated.sizeBytes === undefined || stated.sizeBytes === expected.sizeBytes
      ? []
      : [`${stated.sizeBytes} bytes instead of ${expected.sizeBytes}`]),
    ...(stated.sha256 === undefined || stated.sha256 === expected.sha256
      ? []
      : [`SHA-256 "${stated.sha256}" instead of "${expected.sha256}"`]),
    ...(Number.isNaN(published) ? [] : [`published on ${new Date(published).toISOString().slice(0, 10)}`]),
  ].join(', ');
  return `${expected.others === undefined ? 'The server has' : 'Upstream has published'} another file at "${expected.url}": ${facts}`;
}

function wrongSize({ url, sizeBytes }: ExpectedBytes, size: string): ResponseVerdict {
  return { kind: 'broken', message: `The server has ${size} bytes at "${url}" instead of ${sizeBytes}` };
}

const cannotResume = (url: string): ResponseVerdict => ({ kind: 'restart', message: `The server cannot resume the download of "${url}"` });

function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}
