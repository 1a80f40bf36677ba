/** What a worker process runs (`SVC_WORKERS`). Everything it needs to know comes in messages, so that no secret is in its environment. */
import { PROVIDERS } from '../providers/registry.ts';
import { createWorkerCheck } from './create-check.ts';
import { keepTickShape } from '../turbo/heap/keep-tick-shape.ts';
import { runWorker } from './run-worker.ts';

keepTickShape();
runWorker({ providers: PROVIDERS, createCheck: createWorkerCheck });
