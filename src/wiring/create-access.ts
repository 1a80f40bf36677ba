/** Authentication: the tokens of the host or of the cluster, and the check of requests. */
import { join } from 'node:path';
import type { LocalSocket } from '../api/server/local-socket.ts';
import { createProxyMatcher, createTokenCheck } from '../auth/check-token.ts';
import type { StoreChange } from '../auth/decide/token-file-text.ts';
import { createTokenManager } from '../auth/manage-tokens.ts';
import { createSharedTokenStore } from '../auth/shared-token-store.ts';
import { createTokenStore, tokenFileOf, createTokenUse } from '../auth/token-store.ts';
import type { ServiceOptions, World } from './world.ts';

export type AccessControl = Awaited<ReturnType<typeof createAccess>>;

const FLUSH_MS = 60_000;

type AccessParts = Readonly<{ shared: World['tokens']; isLocal: LocalSocket['isLocal'] }>;

export async function createAccess({ settings, log }: Pick<ServiceOptions, 'settings' | 'log'>, { shared, isLocal }: AccessParts) {
  const path = tokenFileOf(settings);
  const where = shared === undefined ? { file: path } : { tokens: shared.name };
  const onChange = (change: StoreChange): void => log.info({ audit: true, ...where, ...change }, describeChange(change));
  const store = shared === undefined ? createTokenStore({ path, log, onChange }) : createSharedTokenStore({ shared, log, onChange });
  // Problems with the file are logged at the start, and not with the first request.
  if (shared === undefined && settings.SVC_AUTH_ENABLED) store.current();
  const running = new AbortController();
  // Changes are logged when they happen, and not with the next request.
  shared?.changes(() => void store.current(), running.signal);
  /** False while the tokens were not read yet, so that none can be accepted. */
  const isReady = (): boolean => !settings.SVC_AUTH_ENABLED || shared === undefined || shared.copy() !== undefined;
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
  const authorize = createTokenCheck(settings, { store, isLocal, isReady, onUse: use.note });
  return {
    authorize,
    tokens: createTokenManager({ store, lastUses: use.lastUses, wallNow }),
    isProxy,
    isReady,
    tokenUsed(id: string): void {
      // The change of a file that only workers have looked at is logged as well.
      store.current();
      use.note(id);
    },
    async stop(): Promise<void> {
      running.abort();
      clearInterval(timer);
      await use.flush();
    },
  };
}

function describeChange(change: StoreChange): string {
  const parts = (['added', 'removed', 'edited'] as const).flatMap((what) =>
    change[what].length === 0 ? [] : `${what} ${change[what].join(', ')}`,
  );
  return `The tokens have changed: ${parts.join('; ')}`;
}
