/** What a worker process runs (`SVC_WORKERS`): it joins the parts of a worker, and ends with its controller. Everything it needs to know comes in messages, so that no secret is in its environment. */
import type { Socket } from 'node:net';
import { PROVIDERS } from '../providers/registry.ts';
import { createSiteGuard } from '../api/site-guard.ts';
import type { FromWorker, ToWorker, WorkerStart } from '../workers/messages.ts';
import { startWorker, type Worker } from '../workers/worker.ts';
import { createWorkerCheck } from './create-check.ts';
import { collectWhenIdle } from './heap/collect-when-idle.ts';
import { createHeapLimits, keepYoungHeapSmall } from './heap/heap-limits.ts';
import { readSitePolicy } from './site-policy.ts';

type Told = Exclude<ToWorker, { readonly kind: 'start' }>;

keepYoungHeapSmall();
// A terminal and systemd send their signals to all processes of a service. The controller says when to stop.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.once('disconnect', () => process.exit(0));

let worker: Worker | undefined;
/** What arrives while the worker starts. */
const early: Told[] = [];

process.on('message', (message: ToWorker) => {
  if (message.kind === 'start') void start(message);
  else if (worker === undefined) early.push(message);
  else worker.take(message);
});

async function start(options: WorkerStart): Promise<void> {
  const heap = createHeapLimits();
  const { settings } = options;
  const started = await startWorker({
    start: options,
    providers: PROVIDERS,
    site: createSiteGuard(readSitePolicy(settings, false)),
    authorizeWith: (onUse) => createWorkerCheck(settings, onUse),
    onRequest: heap.growForTraffic,
    send,
  });
  worker = started;
  for (const message of early.splice(0)) started.take(message);
  const ended = new AbortController();
  collectWhenIdle({ activity: started.activity, log: { debug: () => undefined } }, ended.signal);
  await started.closed;
  send({ kind: 'ended' }, undefined, () => process.exit(0));
}

/** A message that cannot be sent means that the controller is gone, and so will this process be. */
function send(message: FromWorker, socket?: Socket, done: (error: Error | null) => void = () => undefined): void {
  process.send?.(message, socket, {}, done);
}
