/** Creates, lists and revokes tokens, for the API and `svcctl token create` and its siblings, which share one file. */
import type { Scope } from '../schema/words/access.ts';
import { createToken } from './token-hash.ts';
import type { TokenChange, TokenStore } from './token-store.ts';

export interface TokenInfo {
  readonly id: string;
  readonly label: string;
  readonly scope: Scope;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** Unix milliseconds; undefined if it was never used. */
  readonly lastUsedAt: number | undefined;
}

export interface CreatedToken extends Omit<TokenInfo, 'lastUsedAt'> {
  /** The whole token. It is not stored anywhere. */
  readonly token: string;
}

type Changed<T> = { readonly ok: true; readonly value: T } | Extract<TokenChange, { readonly ok: false }>;

export interface TokenManager {
  create(wanted: Pick<TokenInfo, 'label' | 'scope'>): Promise<Changed<CreatedToken>>;
  /** Sorted by the time of creation. */
  list(): readonly TokenInfo[];
  /** False if there is no such token. */
  revoke(id: string): Promise<Changed<boolean>>;
}

export interface TokenManagerOptions {
  readonly store: TokenStore;
  readonly lastUses: () => ReadonlyMap<string, number>;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
}

export function createTokenManager({ store, lastUses, wallNow }: TokenManagerOptions): TokenManager {
  return {
    async create({ label, scope }) {
      const { id, token, hash } = await createToken();
      const createdAt = new Date(wallNow()).toISOString();
      const changed = await store.change((tokens) => new Map([...tokens, [id, { label, scope, created_at: createdAt, hash }]]));
      return changed.ok ? { ok: true, value: { id, label, scope, createdAt, token } } : changed;
    },
    list() {
      const uses = lastUses();
      return [...store.current()]
        .map(([id, { label, scope, created_at: createdAt }]) => ({ id, label, scope, createdAt, lastUsedAt: uses.get(id) }))
        .toSorted((left, right) => left.createdAt.localeCompare(right.createdAt) || left.id.localeCompare(right.id));
    },
    async revoke(id) {
      let found = false;
      const changed = await store.change((tokens) => {
        found = tokens.has(id);
        return new Map([...tokens].filter(([other]) => other !== id));
      });
      return changed.ok ? { ok: true, value: found } : changed;
    },
  };
}
