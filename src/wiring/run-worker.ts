/** Joins the parts of a worker in a process of its own, which ends with its controller. */
import type { Socket } from 'node:net';
import { createSiteGuard } from '../api/server/site-guard.ts';
import type { Authorize } from '../auth/check-token.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { FromWorker, ToWorker, WorkerStart } from '../turbo/workers/messages.ts';
import type { BoardChange } from '../turbo/workers/decide/board-changes.ts';
import { startWorker, type Worker } from '../turbo/workers/worker.ts';
import { collectWhenIdle } from '../turbo/heap/collect-when-idle.ts';
import { createHeapLimits, keepYoungHeapSmall } from '../turbo/heap/heap-limits.ts';
import type { LiveRegistry } from './engines.ts';
import { readSitePolicy } from './site-policy.ts';

export interface WorkerParts {
  readonly registry: LiveRegistry;
  readonly createCheck: (settings: Settings, onUse: (id: string) => void) => Authorize;
}

/** The next start of the service waits longer for the port. */
const ORPHAN_CHECK_MS = 500;

export function runWorker(parts: WorkerParts): void {
  keepYoungHeapSmall();
  // A terminal or service manager signals all processes of a service. The controller decides when to stop.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  endWithController();
  let worker: Worker | undefined;
  const early: Exclude<ToWorker, { readonly kind: 'start' }>[] = [];
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'start' || message.kind === 'board')
      declareEngines(parts.registry, message.kind === 'start' ? message.board : message.change);
    if (message.kind === 'start') {
      void start(message, parts).then((started) => {
        worker = started;
        for (const each of early.splice(0)) started.take(each);
      });
    } else if (worker === undefined) early.push(message);
    else worker.take(message);
  });
}

/** Node may miss the end of the channel if the controller crashes; then the parent changes. */
function endWithController(): void {
  const controller = process.ppid;
  process.once('disconnect', () => process.exit(0));
  setInterval(() => {
    if (process.ppid !== controller || !process.connected) process.exit(0);
  }, ORPHAN_CHECK_MS).unref();
}

/** A slot brings the definition of its engine. */
function declareEngines({ declare }: LiveRegistry, change: BoardChange | undefined): void {
  const slots = change?.slots?.set ?? [];
  declare(
    slots.flatMap(([, { spec }]) => spec.engine ?? []),
    false,
  );
}

async function start(options: WorkerStart, { registry, createCheck }: WorkerParts): Promise<Worker> {
  const heap = createHeapLimits();
  const { settings } = options;
  const worker = await startWorker({
    start: options,
    providers: registry.providers,
    site: createSiteGuard(readSitePolicy(settings, false)),
    authorizeWith: (onUse) => createCheck(settings, onUse),
    onRequest: heap.growForTraffic,
    send,
  });
  const ended = new AbortController();
  collectWhenIdle({ activity: worker.activity, log: { debug: () => undefined } }, ended.signal);
  void worker.closed.then(() => send({ kind: 'ended' }, undefined, () => process.exit(0)));
  return worker;
}

/** A message that cannot be sent means that the controller is gone, and so will this process be. */
function send(message: FromWorker, socket?: Socket, done: (error: Error | null) => void = () => undefined): void {
  process.send?.(message, socket, {}, done);
}
