/** What a worker process of the gateway's tests runs: as `wiring/worker-main.ts`, with the provider of the tests and without authentication. */
import { createRegistry } from '../../../src/wiring/engines.ts';
import { runWorker } from '../../../src/wiring/run-worker.ts';
import { allowEveryone } from '../../../src/auth/check-token.ts';
import { GGUF_PROVIDERS } from './gateway-provider.ts';

runWorker({ registry: createRegistry(GGUF_PROVIDERS), createCheck: () => allowEveryone });
