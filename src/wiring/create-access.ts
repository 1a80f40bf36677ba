/** Joins the parts of authentication: the tokens of the host, and the check of every request where authentication is on. */
import { join } from 'node:path';
import { allowEveryone } from '../api/authorize.ts';
import { createAuthorize, type Authorize } from '../auth/create-authorize.ts';
import { createTokenManager, type TokenManager } from '../auth/manage-tokens.ts';
import { createTokenStore, type TokenStore } from '../auth/token-store.ts';
import { createTokenUse } from '../auth/token-use.ts';
import { createTokenVerifier } from '../auth/token-verifier.ts';
import { createProxyMatcher, createSecretMatcher } from '../auth/trusted-proxies.ts';
import type { ServiceOptions } from './world.ts';

export interface AccessControl {
  readonly authorize: Authorize;
  readonly tokens: TokenManager;
  /** Whether an address is one of `SVC_TRUSTED_PROXIES`. */
  isProxy(address: string | undefined): boolean;
  /** Writes when tokens were last used. */
  stop(): Promise<void>;
}

const NO_STORE: TokenStore = {
  current: () => new Map(),
  change: async () => ({ ok: false, message: 'Let an Ingress authenticate: tokens do not work in a cluster yet' }),
};
const FLUSH_MS = 60_000;

/** `inCluster`: there is no file that all replicas share, so tokens cannot be managed. */
export async function createAccess(
  { settings, log }: Pick<ServiceOptions, 'settings' | 'log'>,
  inCluster: boolean,
): Promise<AccessControl> {
  const store = inCluster ? NO_STORE : createTokenStore({ path: join(settings.SVC_CONFIG_DIR, 'tokens.toml'), log });
  const wallNow = (): number => Date.now();
  const use = await createTokenUse({
    path: join(settings.SVC_STATE_DIR, 'token-use.json'),
    wallNow,
    isKnown: (id) => store.current().has(id),
    log,
  });
  const isProxy = createProxyMatcher(settings.SVC_TRUSTED_PROXIES);
  const timer = setInterval(() => void use.flush(), FLUSH_MS);
  timer.unref();
  const authorize = createAuthorize({
    verifier: createTokenVerifier({ store }),
    isProxy,
    matchesSecret: createSecretMatcher(settings.SVC_PROXY_SECRET),
    onUse: use.note,
  });
  return {
    authorize: settings.SVC_AUTH_ENABLED ? authorize : allowEveryone,
    tokens: createTokenManager({ store, lastUses: use.lastUses, wallNow }),
    isProxy,
    async stop() {
      clearInterval(timer);
      await use.flush();
    },
  };
}
