/**
 * Connections to servers on other machines, and the token that they get. Nothing is sent before the server is trusted.
 * Files of tokens and certificates are read by whoever connects, again when they have changed, so that no other part of
 * the program has what is in them.
 */
import type { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { connect, isIP, Socket, type LookupFunction, type OnReadOpts } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Endpoint } from '../providers/provider.ts';
import type { Link } from '../schema/slot/remote-document.ts';
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { Readable } from '../schema/words/failure.ts';
import { addHop } from './decide/judge-remote.ts';
import { createAddressCheck, type IsPublicAddress } from './public-address.ts';
import { codeOf } from '../platform/error-text.ts';

export type Linked = Endpoint & { readonly link: Link };
export type Links = ReturnType<typeof createLinks>;

/** Code of an error that trying again does not change. */
export const UNTRUSTED = 'ERR_REMOTE_UNTRUSTED';
const untrusted = (message: string): Error => Object.assign(new Error(message), { code: UNTRUSTED });

const MOST_TOKEN_BYTES = 16_384;
const TOKEN = /^[\x21-\x7e]+$/;

interface Refused {
  readonly code: ErrorCode;
  readonly problem: string;
}

export function createLinks(isPublic: IsPublicAddress = createAddressCheck()) {
  const files = new Map<string, { readonly version: string; readonly text: string }>();

  /** Throws the system's error. */
  function read(path: string): string {
    const { mtimeMs, ino, size } = statSync(path);
    const version = [mtimeMs, ino, size].join(' ');
    const known = files.get(path);
    if (known?.version === version) return known.text;
    const text = readFileSync(path, 'utf8');
    files.set(path, { version, text });
    return text;
  }

  /** Returns header lines, each with its end. */
  function credential({ credentialFile }: Link): Readable<{ readonly lines: string }> {
    if (credentialFile === undefined) return { ok: true, lines: '' };
    try {
      const token = read(credentialFile).trim();
      if (token.length <= MOST_TOKEN_BYTES && TOKEN.test(token)) return { ok: true, lines: `authorization: Bearer ${token}\r\n` };
      return { ok: false, problem: 'The file of "remote.credential_file" has no token: write one line of visible ASCII' };
    } catch (error) {
      return { ok: false, problem: `The file of "remote.credential_file" cannot be read (${codeOf(error)})` };
    }
  }

  /** A name is judged by all of its addresses, at each connection. */
  const publicOnly: LookupFunction = (name, options, callback) =>
    lookup(name, { ...options, all: true }, (error, found) => {
      const other = error === null ? found.find(({ address }) => !isPublic(address)) : undefined;
      const [first] = found ?? [];
      if (error !== null || first === undefined || other !== undefined) callback(error ?? notPublic(name, other?.address ?? name), '', 0);
      else if (options.all === true) callback(null, [...found]);
      else callback(null, first.address, first.family);
    });

  return {
    /** `onReady`: the server is trusted. What is written before waits for that. The socket fails if it is not. */
    connect({ host, port, link }: Linked, options: { readonly onread?: OnReadOpts } = {}, onReady: () => void = () => undefined): Socket {
      if (!link.private && isIP(host) !== 0 && !isPublic(host)) return failed(notPublic(host, host));
      const to = { host, port, noDelay: true, ...options, ...(link.private ? {} : { lookup: publicOnly }) };
      if (!link.url.startsWith('https:')) return connect(to).once('connect', onReady);
      let ca: string | undefined;
      try {
        ca = link.caFile === undefined ? undefined : read(link.caFile);
      } catch (error) {
        return failed(untrusted(`The file of "remote.ca_file" cannot be read (${codeOf(error)})`));
      }
      const names = { servername: isIP(host) === 0 ? host : '', ALPNProtocols: ['http/1.1'] };
      // Judged below, with what a user needs in order to decide.
      const socket = connectTls({ ...to, ...names, ...(ca === undefined ? {} : { ca }), rejectUnauthorized: false });
      socket.cork();
      return socket.once('secureConnect', () => {
        const problem = whyUntrusted(socket, link);
        if (problem !== undefined) return void socket.destroy(untrusted(problem));
        socket.uncork();
        onReady();
      });
    },
    /** Header lines of a request to it, from those of the client. Fails if it would go round in a circle. */
    linesFor(link: Link, lines: string): { readonly ok: true; readonly lines: string } | (Refused & { readonly ok: false }) {
      const token = credential(link);
      if (!token.ok) return { ...token, code: 'upstream.failed' };
      const hops = addHop(lines, link.hop);
      return hops.ok ? { ok: true, lines: `${hops.lines}${token.lines}` } : { ...hops, code: 'request.loop' };
    },
    credential,
  };
}

function failed(error: Error): Socket {
  return new Socket().destroy(error);
}

function notPublic(name: string, address: string): Error {
  const which = name === address ? `"${name}"` : `"${address}", an address of "${name}",`;
  return untrusted(`${which} is not public: set "remote.private" to true if the slot may use it`);
}

function whyUntrusted(socket: TLSSocket, { fingerprint }: Link): string | undefined {
  const certificate = socket.getPeerX509Certificate();
  const own = certificate === undefined ? 'none' : `sha256:${digitsOf(certificate.fingerprint256)}`;
  if (fingerprint !== undefined) {
    if (own === `sha256:${digitsOf(fingerprint.slice('sha256:'.length))}`) return undefined;
    return `The certificate of the server has the fingerprint "${own}", and not the one in "remote.fingerprint"`;
  }
  if (socket.authorized) return undefined;
  // Names and addresses are judged last, so that the reason is that one if there are no others.
  const why = whyInvalid(String(socket.authorizationError), certificate);
  return `The certificate of the server is not trusted: ${why}; correct it, or set "remote.ca_file", or "remote.fingerprint" to "${own}"`;
}

function whyInvalid(code: string, certificate: X509Certificate | undefined): string {
  if (code.includes('CERT_HAS_EXPIRED')) return `it was valid until ${certificate?.validTo}, if the clock here is right`;
  if (code.includes('CERT_NOT_YET_VALID')) return `it is valid from ${certificate?.validFrom}, if the clock here is right`;
  return code.includes('ALTNAME') ? `it is one of ${certificate?.subjectAltName ?? 'another name'}` : code;
}

const digitsOf = (text: string): string => text.replaceAll(':', '').toLowerCase();
