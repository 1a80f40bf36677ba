/**
 * The check of every request, in the controller and in each worker: who is the caller, and may the caller use the
 * route? The rules are in `decide/decide-access.ts`.
 *
 *   authentication off ─► everyone may do everything
 *   no credential ─► refused, except on the local socket
 *   an e-mail address from a trusted proxy ─► the scope that `SVC_IDENTITY_ROLES` gives it
 *   a token ─► compared with its hash, then remembered ─► its scope
 */
import { createHash, hash as digestOf, timingSafeEqual } from 'node:crypto';
import { BlockList, isIPv6, type Socket } from 'node:net';
import { createSemaphore } from '../platform/semaphore.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { Access } from '../schema/words/access.ts';
import { limitsOf, type CallerLimits } from '../schema/words/caller-limits.ts';
import * as rules from './decide/decide-access.ts';
import { parseToken, type CallerTables, type TokenParts, type TokenRow } from './decide/token-file-text.ts';
import { DUMMY_HASH, matchesHash } from './manage-tokens.ts';
import type { TokenStore } from './token-store.ts';

interface CheckedRequest {
  readonly url?: string | undefined;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  /** The same object for requests of one connection with the same headers. Default: unknown. */
  readonly sameHead?: object | undefined;
  readonly socket: Socket;
}

export type Authorize = (access: Access, request: CheckedRequest) => rules.AccessDecision | Promise<rules.AccessDecision>;

export interface TokenCheckDeps {
  readonly store: Pick<TokenStore, 'current'> & Partial<Pick<TokenStore, 'callers'>>;
  readonly onUse: (id: string) => void;
  /** The connection came through the local socket, which only root and the service's user can open. Default: none. */
  readonly isLocal?: (socket: Socket) => boolean;
  /** False until the tokens were read. Default: always true. */
  readonly isReady?: () => boolean;
  /** Default: compares tokens of `store` with their hashes. */
  readonly verifier?: TokenVerifier;
  /** Unix milliseconds. Default: the system's. */
  readonly wallNow?: () => number;
}

export type CheckSettings = rules.ProxySettings & Pick<Settings, 'SVC_IDENTITY_ROLES'>;

export const allowEveryone: Authorize = () => rules.ANYONE;

export function createTokenCheck(settings: CheckSettings, deps: TokenCheckDeps): Authorize {
  if (!settings.SVC_AUTH_ENABLED) return createOpenCheck(deps);
  const { store, onUse, isLocal = () => false, isReady = () => true, wallNow = Date.now } = deps;
  const isProxy = createProxyMatcher(settings.SVC_TRUSTED_PROXIES);
  const matchesSecret = createSecretMatcher(settings.SVC_PROXY_SECRET);

  const { verifier = createTokenVerifier({ store }) } = deps;
  /** The file is looked at, as for tokens. */
  function callersNow(): CallerTables | undefined {
    store.current();
    return store.callers?.();
  }

  function judge(access: Access, verdict: TokenVerdict): rules.AccessDecision {
    if (verdict === 'busy') return rules.BUSY;
    if (verdict === undefined) return rules.INVALID;
    if (verdict.expiresAt !== undefined && verdict.expiresAt <= wallNow()) return rules.EXPIRED;
    onUse(verdict.id);
    return rules.decideScope(access, verdict);
  }

  const credentials = new WeakMap<object, rules.Credential>();
  function credentialOf({ rawHeaders, socket, sameHead }: CheckedRequest): rules.Credential {
    const known = sameHead && credentials.get(sameHead);
    if (known !== undefined) return known;
    const credential = rules.readCredential(rawHeaders, { isProxy: () => isProxy(socket.remoteAddress), matchesSecret });
    if (sameHead !== undefined) credentials.set(sameHead, credential);
    return credential;
  }

  return (access, request) => {
    if (access === 'open') return rules.ALLOWED;
    const { socket } = request;
    const credential = credentialOf(request);
    switch (credential.kind) {
      case 'none':
        return isLocal(socket) ? rules.decideScope(access, rules.LOCAL) : rules.REQUIRED;
      case 'ambiguous':
        return rules.AMBIGUOUS;
      case 'email':
        return rules.decideIdentity(access, credential.email, { roles: settings.SVC_IDENTITY_ROLES, limits: callersNow() });
      default: {
        if (!isReady()) return rules.NOT_READY;
        const verdict = verifier.verify(credential.token, socket);
        return verdict instanceof Promise ? verdict.then((late) => judge(access, late)) : judge(access, verdict);
      }
    }
  };
}

/** Nobody's access depends on the file, so it need not be looked at with each request. */
const LOOK_MS = 1000;

/** Everyone may do everything, within the limits of `anyone`. */
function createOpenCheck({ store }: Pick<TokenCheckDeps, 'store'>): Authorize {
  if (store.callers === undefined) return allowEveryone;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let decision = rules.ANYONE;
  return () => {
    const at = performance.now();
    if (at - lookedAt < LOOK_MS) return decision;
    lookedAt = at;
    store.current();
    const limits = store.callers?.().get('anyone');
    decision = limits === undefined ? rules.ANYONE : rules.anyoneWithin(limits);
    return decision;
  };
}

/** `entries`: addresses and CIDR ranges, already validated. An IPv4 address also matches in its IPv6 form. */
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

/** Compares in constant time. Without a secret, every value matches. */
function createSecretMatcher(secret: string | undefined): (value: string | undefined) => boolean {
  if (secret === undefined) return () => true;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = digest(secret);
  return (value) => value !== undefined && timingSafeEqual(digest(value), wanted);
}

interface VerifiedToken extends rules.Caller {
  readonly id: string;
  /** Unix milliseconds. Undefined: never. */
  readonly expiresAt?: number | undefined;
}

/** `busy`: too many checks are pending. Undefined: the token is not valid. */
export type TokenVerdict = VerifiedToken | 'busy' | undefined;

export interface TokenVerifier {
  /**
   * Returns at once for a known token. `connection`: the next request there with the same token costs no digest, and
   * the token stays in memory as long as the connection. Default: none.
   */
  verify(token: string, connection?: object): TokenVerdict | Promise<TokenVerdict>;
}

/**
 * Limits of concurrent and pending checks. Unknown ids have their own, so that invented tokens never delay real ones.
 * Together they leave one thread of libuv's pool to everything else.
 */
const KNOWN = { running: 2, waiting: 64 };
const UNKNOWN = { running: 1, waiting: 32 };
/** Concurrent checks per id, so that guessing the secret of one token does not delay the others. */
const MOST_PER_ID = 4;
/** Each digest takes about 200 bytes. */
const MOST_REMEMBERED = 20_000;

interface VerifierOptions extends Pick<TokenCheckDeps, 'store'> {
  readonly matches?: typeof matchesHash;
}

/**
 * Compares tokens with their hashes, which takes tens of milliseconds in a thread pool. Results are remembered by a
 * digest of the token, with the row's hash: a revoked or replaced row invalidates them.
 */
export function createTokenVerifier({ store, matches = matchesHash }: VerifierOptions): TokenVerifier {
  /** `hash`: the row's; `DUMMY_HASH` if there was no row. */
  const remembered = new Map<string, { readonly hash: string; readonly matches: boolean }>();
  /** The last valid token of each connection. */
  const seen = new WeakMap<object, { readonly token: string; readonly row: TokenRow; readonly caller: VerifiedToken }>();
  const pending = new Map<string, Promise<TokenVerdict>>();
  const perId = new Map<string, number>();
  const known = createCheckQueue(KNOWN);
  const unknown = createCheckQueue(UNKNOWN);

  /** One object for each row, so that what is remembered for it stays valid. */
  const limits = new WeakMap<TokenRow, ReturnType<typeof limitsOf>>();
  function callerFor(id: string, row: TokenRow): VerifiedToken {
    if (!limits.has(row)) limits.set(row, limitsOf(row));
    return callerOf(id, row, limits.get(row));
  }

  async function check(digest: string, { id, secret }: TokenParts, hash: string): Promise<TokenVerdict> {
    // An unknown id costs the same as a wrong secret.
    const isRight = (await matches(hash, secret)) && hash !== DUMMY_HASH;
    const oldest = remembered.keys().next().value;
    if (remembered.size >= MOST_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
    remembered.delete(digest);
    remembered.set(digest, { hash, matches: isRight });
    const row = store.current().get(id);
    // It may have been revoked meanwhile.
    return isRight && row?.hash === hash ? callerFor(id, row) : undefined;
  }

  function begin(digest: string, parts: TokenParts, row: TokenRow | undefined): TokenVerdict | Promise<TokenVerdict> {
    const { id } = parts;
    const queue = row === undefined ? unknown : known;
    const ofId = perId.get(id) ?? 0;
    if (queue.isFull() || ofId >= MOST_PER_ID) return 'busy';
    perId.set(id, ofId + 1);
    const verdict = queue
      .run(async () => await check(digest, parts, row?.hash ?? DUMMY_HASH))
      .finally(() => {
        pending.delete(digest);
        const left = (perId.get(id) ?? 1) - 1;
        if (left === 0) perId.delete(id);
        else perId.set(id, left);
      });
    pending.set(digest, verdict);
    return verdict;
  }

  return {
    verify(token, connection) {
      const last = connection === undefined ? undefined : seen.get(connection);
      // A changed or revoked row is another object, or none.
      if (last?.token === token && store.current().get(last.caller.id) === last.row) return last.caller;
      const parts = parseToken(token);
      if (parts === undefined) return undefined;
      const row = store.current().get(parts.id);
      const digest = digestOf('sha256', token, 'base64');
      const entry = remembered.get(digest);
      if (entry !== undefined && entry.hash === (row?.hash ?? DUMMY_HASH)) {
        if (!entry.matches || row === undefined) return undefined;
        const caller = callerFor(parts.id, row);
        if (connection !== undefined) seen.set(connection, { token, row, caller });
        return caller;
      }
      // It was valid and is revoked: there is no hash to compare it with.
      if (entry?.matches === true && row === undefined) return undefined;
      return pending.get(digest) ?? begin(digest, parts, row);
    },
  };
}

const callerOf = (id: string, row: TokenRow, limits: CallerLimits | undefined): VerifiedToken => ({
  id,
  key: `token:${id}`,
  identity: row.label,
  scope: row.scope,
  limits,
  expiresAt: row.expires_at === undefined ? undefined : Date.parse(row.expires_at),
});

function createCheckQueue(limits: typeof KNOWN) {
  const semaphore = createSemaphore(limits.running);
  return {
    isFull: () => semaphore.waiting >= limits.waiting,
    async run<T>(work: () => Promise<T>): Promise<T> {
      await semaphore.acquire();
      try {
        return await work();
      } finally {
        semaphore.release();
      }
    },
  };
}
