/**
 * Checks tokens against their hashes. That takes tens of milliseconds of CPU in a thread pool, so a token that was checked is remembered by a digest of what was sent, together
 * with the hash that it was compared with: a row that is revoked or replaced makes what is remembered worthless. Few checks run at a time, so that a flood of tokens
 * that match nothing leaves the service its CPU.
 */
import { hash as digestOf } from 'node:crypto';
import type { Caller } from './decide/decide-access.ts';
import { parseToken } from './decide/token-format.ts';
import type { TokenRow } from './decide/token-file-text.ts';
import { DUMMY_HASH, matchesHash } from './token-hash.ts';
import type { TokenStore } from './token-store.ts';

export interface VerifiedToken extends Caller {
  readonly id: string;
}

/** `busy`: too many checks wait already. Undefined: the token is not valid. */
export type TokenVerdict = VerifiedToken | 'busy' | undefined;

export interface TokenVerifier {
  /** Returns at once for a token that was checked before. */
  verify(token: string): TokenVerdict | Promise<TokenVerdict>;
}

interface Remembered {
  /** Of the row; `DUMMY_HASH` where there was none. */
  readonly hash: string;
  readonly matches: boolean;
}

const RUNNING = 2;
const WAITING = 64;
/** Of digests, with 200 bytes each. */
const MOST_REMEMBERED = 20_000;

export function createTokenVerifier(store: Pick<TokenStore, 'current'>): TokenVerifier {
  const remembered = new Map<string, Remembered>();
  const underWay = new Map<string, Promise<TokenVerdict>>();
  const waiting: (() => void)[] = [];
  let running = 0;

  async function takeTurn(): Promise<void> {
    if (running < RUNNING) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }

  function endTurn(): void {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }

  function remember(digest: string, entry: Remembered): void {
    const oldest = remembered.keys().next().value;
    if (remembered.size >= MOST_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
    remembered.delete(digest);
    remembered.set(digest, entry);
  }

  async function check(digest: string, id: string, secret: string): Promise<TokenVerdict> {
    await takeTurn();
    try {
      const hash = store.current().get(id)?.hash ?? DUMMY_HASH;
      // An unknown id costs the same time as a wrong secret.
      const matches = (await matchesHash(hash, secret)) && hash !== DUMMY_HASH;
      remember(digest, { hash, matches });
    } finally {
      endTurn();
    }
    return recall(digest, id);
  }

  /** The verdict that is remembered, if the row is still the same. */
  function recall(digest: string, id: string): VerifiedToken | undefined {
    const entry = remembered.get(digest);
    const row = store.current().get(id);
    return entry?.matches === true && row !== undefined && row.hash === entry.hash ? callerOf(id, row) : undefined;
  }

  return {
    verify(token) {
      const parts = parseToken(token);
      if (parts === undefined) return undefined;
      const { id, secret } = parts;
      const digest = digestOf('sha256', token, 'base64');
      const entry = remembered.get(digest);
      if (entry !== undefined && entry.hash === (store.current().get(id)?.hash ?? DUMMY_HASH)) return recall(digest, id);
      const present = underWay.get(digest);
      if (present !== undefined) return present;
      if (waiting.length >= WAITING) return 'busy';
      const verdict = check(digest, id, secret).finally(() => underWay.delete(digest));
      underWay.set(digest, verdict);
      return verdict;
    },
  };
}

function callerOf(id: string, { label, scope }: TokenRow): VerifiedToken {
  return { id, identity: label, scope };
}
