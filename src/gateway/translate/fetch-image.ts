/**
 * Fetches an image from the public internet. Each name is resolved here and all its addresses are checked; the
 * connection is made to one of them, so that the name cannot change its address in between. Redirects start over. No
 * proxy is used and no credential is sent.
 */
import { lookup } from 'node:dns/promises';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { createAddressCheck, type IsPublicAddress } from '../../remote/public-address.ts';
import type { Settings } from '../../schema/settings/settings.ts';

export type FetchedImage =
  | { readonly ok: true; readonly type: string; readonly bytes: Buffer }
  /** The problem, as the end of a sentence. */
  | { readonly ok: false; readonly why: string };

/** `onBytes` is called with the length of each piece, and returns false if there is no memory for it. Never rejects. */
export type FetchImage = (
  url: string,
  options: { readonly signal: AbortSignal; readonly onBytes: (bytes: number) => boolean },
) => Promise<FetchedImage>;

interface ImageFetcherOptions {
  readonly settings: Pick<Settings, 'SVC_FETCH_IMAGES' | 'SVC_FETCH_IMAGE_LIMIT'>;
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  readonly isPublic?: IsPublicAddress;
}

const FETCH_MS = 20_000;
const MOST_REDIRECTS = 3;

const MAGIC: readonly (readonly [type: string, magic: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^474946383[79]61/],
  ['image/webp', /^52494646.{8}57454250/],
  ['image/bmp', /^424d.{24}(?:0c|28|40|6c|7c)000000/],
];
const MAGIC_BYTES = 18;

class Refused extends Error {}

export function createImageFetcher(options: ImageFetcherOptions): FetchImage {
  const { settings, isPublic = createAddressCheck(), resolve = addressesOf } = options;

  async function addressFor(url: URL): Promise<string> {
    const schemes = settings.SVC_FETCH_IMAGES === 'http' ? ['https:', 'http:'] : ['https:'];
    if (!schemes.includes(url.protocol)) throw new Refused(`"${url.protocol}" is not permitted`);
    const name = url.hostname.replace(/^\[|\]$/g, '');
    const addresses = isIP(name) === 0 ? await resolve(name).catch(() => []) : [name];
    const [first] = addresses;
    // Same text as for a name that does not exist, so that clients cannot probe which names exist in this network.
    if (first === undefined || !addresses.every(isPublic)) throw new Refused('its host has no public address');
    return first;
  }

  async function get(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    const address = await addressFor(url);
    const checked: LookupFunction = (_name, { all }, callback) => {
      const family = isIP(address);
      if (all === true) callback(null, [{ address, family }]);
      else callback(null, address, family);
    };
    return await new Promise((done, failed) => {
      const how = { lookup: checked, agent: false, headers: { accept: 'image/*', 'user-agent': 'svc' }, signal };
      const req = url.protocol === 'https:' ? requestHttps(url, how, done) : requestHttp(url, how, done);
      req.on('error', failed);
      req.end();
    });
  }

  async function follow(url: URL, signal: AbortSignal, redirects = 0): Promise<IncomingMessage> {
    const answer = await get(url, signal);
    const status = answer.statusCode ?? 0;
    const { location } = answer.headers;
    if (status === 200) return answer;
    answer.destroy();
    if (![301, 302, 303, 307, 308].includes(status) || location === undefined) throw new Refused(`the server answered ${status}`);
    if (redirects >= MOST_REDIRECTS) throw new Refused(`the server redirects more than ${MOST_REDIRECTS} times`);
    const next = URL.parse(location, url.href);
    if (next === null) throw new Refused('the server redirects to something that is no URL');
    return await follow(next, signal, redirects + 1);
  }

  return async (url, { signal, onBytes }) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(FETCH_MS)]);
    try {
      const answer = await follow(new URL(url), limited);
      const bytes = await collect(answer, settings.SVC_FETCH_IMAGE_LIMIT, onBytes);
      const type = imageTypeOf(bytes);
      return type === undefined ? { ok: false, why: 'it is no PNG, JPEG, GIF, WebP or BMP image' } : { ok: true, type, bytes };
    } catch (error) {
      if (error instanceof Refused) return { ok: false, why: messageOf(error) };
      if (limited.aborted) return { ok: false, why: `it takes more than ${FETCH_MS / 1000} s` };
      return { ok: false, why: `the connection failed (${codeOf(error) || 'no reason'})` };
    }
  };
}

async function collect(answer: IncomingMessage, limitBytes: number, onBytes: (bytes: number) => boolean): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer) {
    if (!Buffer.isBuffer(piece)) continue;
    bytes += piece.length;
    if (bytes > limitBytes) throw new Refused(`it has more than ${limitBytes} bytes ("SVC_FETCH_IMAGE_LIMIT")`);
    if (!onBytes(piece.length)) throw new Refused('the memory reserved for bodies is full ("SVC_BUFFER_LIMIT")');
    pieces.push(piece);
  }
  if (!answer.complete) throw new Refused('the connection ended too early');
  return Buffer.concat(pieces);
}

const addressesOf = async (name: string): Promise<readonly string[]> => (await lookup(name, { all: true })).map(({ address }) => address);

/** Returns the media type by the first bytes, whatever the server says. Undefined for anything else. */
function imageTypeOf(bytes: Buffer): string | undefined {
  const beginning = bytes.toString('hex', 0, MAGIC_BYTES);
  return MAGIC.find(([, magic]) => magic.test(beginning))?.[0];
}
