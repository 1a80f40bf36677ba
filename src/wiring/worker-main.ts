/** The main file of a worker process (`SVC_WORKERS`). Settings come in a message, so its environment has no secret. */
import { createTokenCheck } from '../auth/check-token.ts';
import { createTokenStore, tokenFileOf } from '../auth/token-store.ts';
import { PROVIDERS } from '../providers/registry.ts';
import { keepTickShape } from '../turbo/heap/heap-limits.ts';
import { createRegistry } from './engines.ts';
import { runWorker } from './run-worker.ts';

keepTickShape();
runWorker({
  registry: createRegistry(PROVIDERS),
  /** Reads the file of tokens itself, so a token is refused before its revocation is confirmed. */
  createCheck(settings, onUse) {
    const store = createTokenStore({ path: tokenFileOf(settings), log: { warn: () => undefined } });
    return createTokenCheck(settings, { store, onUse });
  },
});
