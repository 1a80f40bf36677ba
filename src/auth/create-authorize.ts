/** The check of every request of a service with authentication. The rules are in `decide/`. */
import { BlockList, isIPv6, type Socket } from 'node:net';
import { createHash, timingSafeEqual } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Access } from '../schema/words/access.ts';
import {
  ALLOWED,
  AMBIGUOUS,
  BUSY,
  decideScope,
  INVALID,
  LOCAL,
  NOT_READY,
  REQUIRED,
  readCredential,
  type AccessDecision,
} from './decide/decide-access.ts';
import type { TokenVerdict, TokenVerifier } from './token-verifier.ts';

export interface AuthorizeDeps {
  readonly verifier: TokenVerifier;
  readonly isProxy: (address: string | undefined) => boolean;
  readonly matchesSecret: (value: string | undefined) => boolean;
  /** Whether a connection came through the socket of the service, which only root and its own user can open. Default: none. */
  readonly isLocal?: (socket: Socket) => boolean;
  /** False while the tokens were not read yet. Default: always true. */
  readonly isReady?: () => boolean;
  /** Called with the id of each token that was accepted. */
  readonly onUse: (id: string) => void;
}

/** What a check may look at. */
interface CheckedRequest {
  readonly url?: string | undefined;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
}

export type Authorize = (access: Access, request: CheckedRequest) => AccessDecision | Promise<AccessDecision>;

export function createAuthorize({
  verifier,
  isProxy,
  matchesSecret,
  isLocal = () => false,
  isReady = () => true,
  onUse,
}: AuthorizeDeps): Authorize {
  function judge(access: Access, verdict: TokenVerdict): AccessDecision {
    if (verdict === 'busy') return BUSY;
    if (verdict === undefined) return INVALID;
    onUse(verdict.id);
    return decideScope(access, verdict);
  }

  return (access, { rawHeaders, socket }) => {
    if (access === 'open') return ALLOWED;
    const credential = readCredential(rawHeaders, { isProxy: () => isProxy(socket.remoteAddress), matchesSecret });
    switch (credential.kind) {
      case 'none':
        return isLocal(socket) ? decideScope(access, LOCAL) : REQUIRED;
      case 'ambiguous':
        return AMBIGUOUS;
      case 'email':
        return decideScope(access, { identity: credential.email, scope: 'admin' });
      default: {
        if (!isReady()) return NOT_READY;
        const verdict = verifier.verify(credential.token, socket);
        return verdict instanceof Promise ? verdict.then((late) => judge(access, late)) : judge(access, verdict);
      }
    }
  };
}

/** Which addresses belong to trusted proxies, and whether one has proven itself with its secret. */

/** `entries` are addresses and CIDR ranges, which the settings have checked. An IPv4 address also matches in its IPv6 form. */
export function createProxyMatcher(entries: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    if (address === undefined) return false;
    const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
    return list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
  };
}

/** In a time that does not depend on the value. Without a secret, every value is right. */
export function createSecretMatcher(secret: string | undefined): (value: string | undefined) => boolean {
  if (secret === undefined) return () => true;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = digest(secret);
  return (value) => value !== undefined && timingSafeEqual(digest(value), wanted);
}

/**
 * Looks at something once for all requests that the kernel reported together, instead of once for each.
 *
 * The event loop asks the kernel which connections have bytes ("poll"), and then reads those. So a request that is read after a poll had begun to arrive before it, and a look after the same poll sees all that
 * was done before this request was sent. The next poll has another number, so nothing is ever as old as an earlier one. This compares no times. The one exception is a request that its client sends on
 * a connection behind another one without waiting for the answer to that: it may be judged by the look that was made for the first.
 */

/** Calls `look` at most once for each poll of this thread's event loop. What `look` throws is not remembered. */
export function oncePerPoll<T>(look: () => T): () => T {
  let seen: { readonly loops: number; readonly events: number; readonly value: T } | undefined;
  return () => {
    // A turn of the loop polls again if more is ready than fits in one answer of the kernel. Then only the second number grows.
    const { loopCount: loops, events } = performance.nodeTiming.uvMetricsInfo;
    if (seen?.loops !== loops || seen.events !== events) seen = { loops, events, value: look() };
    return seen.value;
  };
}
