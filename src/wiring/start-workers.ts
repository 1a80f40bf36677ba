/** Starts the workers of a service (`SVC_WORKERS`), once it is known where it listens. */
import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createServer } from 'node:net';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import { bindError, mostConnections } from '../host/host-probe.ts';
import { shareLimits } from '../turbo/workers/decide/share-limits.ts';
import type { WorkerStart } from '../turbo/workers/messages.ts';
import type { WorkerPool } from '../turbo/workers/worker-pool.ts';
import type { ServiceOptions, World } from './world.ts';
import { succeeds } from '../files/write-file.ts';
import { codeOf } from '../platform/error-text.ts';
import { sleep } from '../platform/clock.ts';
import type { Settings } from '../schema/settings/settings.ts';

/** Variables that change how Node itself works, or which certificates it trusts when images are fetched. */
const PASSED_ON = ['NODE_COMPILE_CACHE', 'NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS', 'SSL_CERT_DIR', 'SSL_CERT_FILE', 'TZ'] as const;
const MOST = 64;

/** Lowers `SVC_MAX_CONNECTIONS`, so that connections leave descriptors for slots. Workers may pass on all of theirs. */
export async function fitConnections<Options extends Pick<ServiceOptions, 'settings' | 'log'>>(options: Options): Promise<Options> {
  const { settings, log } = options;
  const most = await mostConnections();
  if (most === undefined || settings.SVC_MAX_CONNECTIONS <= most.connections) return options;
  // A few less than asked for are no problem that somebody must solve.
  log[most.connections < settings.SVC_MAX_CONNECTIONS / 2 ? 'warn' : 'debug'](
    most,
    `"SVC_MAX_CONNECTIONS" is ${most.connections}, because this process may open ${most.descriptors} files: raise "LimitNOFILE"`,
  );
  return { ...options, settings: { ...settings, SVC_MAX_CONNECTIONS: most.connections } };
}

/** Counts workers and the service itself. 1: it forwards alone. */
export async function countProcesses(
  { settings, log }: Pick<ServiceOptions, 'settings' | 'log'>,
  { runtime }: Pick<World, 'runtime'>,
): Promise<Result<number>> {
  const { SVC_WORKERS: wanted, SVC_CONTROL_PLANE: plane } = settings;
  if (wanted === 1 && plane === 'shared') return ok(1);
  if (runtime.traits.network === 'pods') {
    const [name, value, only] = wanted === 1 ? ['SVC_CONTROL_PLANE', plane, '"shared"'] : ['SVC_WORKERS', wanted, 1];
    const message = `"${name}" must be ${only} in a cluster, not "${value}": run more replicas of the gateway instead`;
    return fail('stalled', 'SettingUnusable', message);
  }
  const forwarding = wanted === 'auto' ? Math.min(MOST, availableParallelism()) : wanted;
  const count = plane === 'separate' ? forwarding + 1 : forwarding;
  if (count === 1 || (await canSharePorts(settings.SVC_LISTEN))) return ok(count);
  const effect = 'The service forwards requests itself and alone, because several processes cannot listen on one port on this system';
  log.warn({ workers: forwarding }, `${effect}: "SVC_WORKERS" and "SVC_CONTROL_PLANE" have no effect`);
  return ok(1);
}

export async function startWorkers(
  workers: WorkerPool,
  { settings, env }: Pick<ServiceOptions, 'settings' | 'env'>,
  processes: number,
  { host, port, sampling }: { readonly host: string; readonly port: number } & Pick<WorkerStart, 'sampling'>,
): Promise<void> {
  const shares = shareLimits(settings, processes);
  await workers.start({
    file: fileURLToPath(new URL('worker-main.ts', import.meta.url)),
    env: environmentOf(env),
    host,
    port,
    sampling,
    settings: shares.worker,
    mostBodyBytes: shares.workerBodyBytes,
  });
}

/** The environment may contain secrets, and settings come in a message. */
function environmentOf(env: ServiceOptions['env']): Readonly<Record<string, string>> {
  const own = getCompileCacheDir();
  const passedOn = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
  // Node adds a directory for its version.
  return { ...(own === undefined ? {} : { NODE_COMPILE_CACHE: dirname(own) }), ...Object.fromEntries(passedOn) };
}

/** The kernel shares a port between processes of one user: two services would take each other's connections. */
type Address = Settings['SVC_LISTEN'];

/** Workers of a service that was killed notice it at once, unless the machine is busy. */
const FREED_WITHIN_MS = 3000;
const POLL_MS = 50;

/** Rejects with the error of the system if the address cannot be listened on. */
export async function untilFree({ host, port }: Address, withinMs = FREED_WITHIN_MS): Promise<void> {
  const until = performance.now() + withinMs;
  for (;;) {
    const error = await bindError(host, port);
    if (error === undefined) return;
    if (codeOf(error) !== 'EADDRINUSE' || performance.now() >= until) throw error;
    await sleep(POLL_MS);
  }
}

/** Linux and FreeBSD can, macOS cannot. */
export async function canSharePorts({ host }: Pick<Address, 'host'>): Promise<boolean> {
  await using server = createServer().listen({ host, port: 0, reusePort: true });
  return await succeeds(once(server, 'listening'));
}
