/**
 * Checks tokens against their hashes. That takes tens of milliseconds of CPU in a thread pool, so a token that was checked is remembered by a digest of what was sent, together
 * with the hash that it was compared with: a row that is revoked or replaced makes what is remembered worthless. Only the last valid token of an open connection is kept as it was
 * sent. Few checks run at a time, so that a flood of tokens that match nothing leaves the service its CPU, and tokens that exist do not wait behind it.
 */
import { hash as digestOf } from 'node:crypto';
import type { Caller } from './decide/decide-access.ts';
import { parseToken, type TokenParts, type TokenRow } from './decide/token-file-text.ts';
import { DUMMY_HASH, matchesHash } from './token-hash.ts';
import type { TokenStore } from './token-store.ts';

interface VerifiedToken extends Caller {
  readonly id: string;
}

/** `busy`: too many checks wait already. Undefined: the token is not valid. */
export type TokenVerdict = VerifiedToken | 'busy' | undefined;

export interface TokenVerifier {
  /**
   * Returns at once for a token that was checked before. `connection`: the one on which it came, so that the next request with it costs no digest. The token itself stays in memory
   * for as long as the connection does. Default: none.
   */
  verify(token: string, connection?: object): TokenVerdict | Promise<TokenVerdict>;
}

/** The token that a connection has sent last, of those that are valid. */
interface Seen {
  readonly token: string;
  readonly row: TokenRow;
  readonly caller: VerifiedToken;
}

interface Remembered {
  /** Of the row; `DUMMY_HASH` where there was none. */
  readonly hash: string;
  readonly matches: boolean;
}

/** Ids that exist, and ids that do not: who invents ids never delays the first use of a token. Together they leave one thread of libuv's pool to everything else. */
const EXISTING = { running: 2, waiting: 64 };
const INVENTED = { running: 1, waiting: 32 };
/** Different secrets that are checked for one id: who knows an id may guess its secret, and never delays the tokens of others for long. */
const MOST_PER_ID = 4;
/** Of digests, with 200 bytes each. */
const MOST_REMEMBERED = 20_000;

interface VerifierOptions {
  readonly store: Pick<TokenStore, 'current'>;
  /** Default: `matchesHash()`. */
  readonly matches?: (hash: string, secret: string) => Promise<boolean>;
}

export function createTokenVerifier({ store, matches = matchesHash }: VerifierOptions): TokenVerifier {
  const remembered = new Map<string, Remembered>();
  const seen = new WeakMap<object, Seen>();
  const underWay = new Map<string, Promise<TokenVerdict>>();
  const perId = new Map<string, number>();
  const existing = createCheckLane(EXISTING);
  const invented = createCheckLane(INVENTED);

  function remember(digest: string, entry: Remembered): void {
    const oldest = remembered.keys().next().value;
    if (remembered.size >= MOST_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
    remembered.delete(digest);
    remembered.set(digest, entry);
  }

  async function check(digest: string, { id, secret }: TokenParts, hash: string): Promise<TokenVerdict> {
    // An id that does not exist costs the same as a wrong secret.
    const isRight = (await matches(hash, secret)) && hash !== DUMMY_HASH;
    remember(digest, { hash, matches: isRight });
    const row = store.current().get(id);
    // It may have been revoked meanwhile.
    return isRight && row?.hash === hash ? callerOf(id, row) : undefined;
  }

  function begin(digest: string, parts: TokenParts, row: TokenRow | undefined): TokenVerdict | Promise<TokenVerdict> {
    const { id } = parts;
    const lane = row === undefined ? invented : existing;
    const ofId = perId.get(id) ?? 0;
    if (lane.isFull() || ofId >= MOST_PER_ID) return 'busy';
    perId.set(id, ofId + 1);
    const verdict = lane
      .run(async () => await check(digest, parts, row?.hash ?? DUMMY_HASH))
      .finally(() => {
        underWay.delete(digest);
        const left = (perId.get(id) ?? 1) - 1;
        if (left === 0) perId.delete(id);
        else perId.set(id, left);
      });
    underWay.set(digest, verdict);
    return verdict;
  }

  return {
    verify(token, connection) {
      const last = connection === undefined ? undefined : seen.get(connection);
      // A row that was changed or revoked is another one, or none.
      if (last?.token === token && store.current().get(last.caller.id) === last.row) return last.caller;
      const parts = parseToken(token);
      if (parts === undefined) return undefined;
      const row = store.current().get(parts.id);
      const digest = digestOf('sha256', token, 'base64');
      const entry = remembered.get(digest);
      if (entry !== undefined && entry.hash === (row?.hash ?? DUMMY_HASH)) {
        if (!entry.matches || row === undefined) return undefined;
        const caller = callerOf(parts.id, row);
        if (connection !== undefined) seen.set(connection, { token, row, caller });
        return caller;
      }
      // It was valid, and has been revoked: there is nothing to compare it with.
      if (entry?.matches === true && row === undefined) return undefined;
      return underWay.get(digest) ?? begin(digest, parts, row);
    },
  };
}

function callerOf(id: string, { label, scope }: TokenRow): VerifiedToken {
  return { id, identity: label, scope };
}

/** Runs few checks of tokens at a time, and lets a limited number wait. */

interface CheckLane {
  /** Whether one more check would have to be refused. */
  isFull(): boolean;
  /** Runs the work as soon as it has its turn. */
  run<T>(work: () => Promise<T>): Promise<T>;
}

interface LaneLimits {
  readonly running: number;
  readonly waiting: number;
}

function createCheckLane(limits: LaneLimits): CheckLane {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function takeTurn(): Promise<void> {
    if (running < limits.running) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }

  function endTurn(): void {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }

  return {
    isFull: () => waiting.length >= limits.waiting,
    async run(work) {
      await takeTurn();
      try {
        return await work();
      } finally {
        endTurn();
      }
    },
  };
}
