/** What a worker process runs (`SVC_WORKERS`). Its settings come in a message, so that no secret is in its environment. */
import { createTokenCheck } from '../auth/check-token.ts';
import { createTokenStore, tokenFileOf } from '../auth/token-store.ts';
import { PROVIDERS } from '../providers/registry.ts';
import { keepTickShape } from '../turbo/heap/heap-limits.ts';
import { runWorker } from './run-worker.ts';

keepTickShape();
runWorker({
  providers: PROVIDERS,
  /** Reads the file of tokens itself, so that a token is refused before its revocation is confirmed. The controller logs what is wrong with the file. */
  createCheck(settings, onUse) {
    const store = createTokenStore({ path: tokenFileOf(settings), log: { warn: () => undefined } });
    return createTokenCheck(settings, { store, onUse });
  },
});
