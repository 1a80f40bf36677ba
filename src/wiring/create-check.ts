/** The check of every request: the same in the process of the controller and in each worker. */
import { join } from 'node:path';
import { allowEveryone } from '../api/ports.ts';
import {
  createAuthorize,
  oncePerPoll,
  createProxyMatcher,
  createSecretMatcher,
  type Authorize,
  type AuthorizeDeps,
} from '../auth/create-authorize.ts';
import { createTokenStore, type TokenStore } from '../auth/token-store.ts';
import { createTokenVerifier } from '../auth/token-verifier.ts';
import type { Settings } from '../schema/settings/settings.ts';

interface CheckParts extends Pick<AuthorizeDeps, 'isLocal' | 'isReady' | 'onUse'> {
  readonly store: Pick<TokenStore, 'current'>;
}

export const tokenFileOf = (settings: Settings): string => join(settings.SVC_CONFIG_DIR, 'tokens.toml');

export function createCheck(settings: Settings, { store, ...parts }: CheckParts): Authorize {
  if (!settings.SVC_AUTH_ENABLED) return allowEveryone;
  return createAuthorize({
    ...parts,
    verifier: createTokenVerifier({ store: { current: oncePerPoll(store.current) } }),
    isProxy: createProxyMatcher(settings.SVC_TRUSTED_PROXIES),
    matchesSecret: createSecretMatcher(settings.SVC_PROXY_SECRET),
  });
}

/**
 * The check of a worker. It looks at the file of tokens itself, so that a revoked token is refused as soon as the file has changed, which is before the revocation is answered. The process
 * of the controller looks at the same file, and logs what is wrong with it.
 */
export function createWorkerCheck(settings: Settings, onUse: AuthorizeDeps['onUse']): Authorize {
  const store = createTokenStore({ path: tokenFileOf(settings), log: { warn: () => undefined } });
  return createCheck(settings, { store, onUse });
}
