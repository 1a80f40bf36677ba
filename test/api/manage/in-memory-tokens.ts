import { createTokenManager, type TokenManager } from '../../../src/auth/manage-tokens.ts';
import type { Tokens } from '../../../src/auth/decide/token-file-text.ts';
import type { TokenStore } from '../../../src/auth/token-store.ts';

export function createInMemoryTokenStore(tokens: Tokens = new Map()): TokenStore {
  let present = tokens;
  return {
    current: () => present,
    async change(edit) {
      present = edit(present);
      return { ok: true };
    },
  };
}

export function createInMemoryTokens(): TokenManager {
  return createTokenManager({ store: createInMemoryTokenStore(), lastUses: () => new Map(), wallNow: () => Date.now() });
}
