import { createTokenManager, type TokenManager } from '../../../src/auth/manage-tokens.ts';
import type { Tokens } from '../../../src/auth/decide/token-file-text.ts';
import type { TokenStore } from '../../../src/auth/token-store.ts';

export interface InMemoryTokenStore extends TokenStore {
  /** Why nothing can be changed. */
  broken: string | undefined;
}

export function createInMemoryTokenStore(tokens: Tokens = new Map()): InMemoryTokenStore {
  let present = tokens;
  const store: InMemoryTokenStore = {
    broken: undefined,
    current: () => present,
    callers: () => new Map(),
    async change(edit) {
      if (store.broken !== undefined) return { ok: false, message: store.broken };
      present = edit(present);
      return { ok: true };
    },
  };
  return store;
}

export function createInMemoryTokens(store: TokenStore = createInMemoryTokenStore()): TokenManager {
  return createTokenManager({ store, lastUses: () => new Map(), wallNow: () => Date.now() });
}
