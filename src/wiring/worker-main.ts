/** What a worker process runs (`SVC_WORKERS`). Everything it needs to know comes in messages, so that no secret is in its environment. */
import { PROVIDERS } from '../providers/registry.ts';
import { createWorkerCheck } from './create-check.ts';
import { runWorker } from './run-worker.ts';

runWorker({ providers: PROVIDERS, createCheck: createWorkerCheck });
