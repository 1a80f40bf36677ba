/** Starts the workers of a service (`SVC_WORKERS`), once it is known where it listens. */
import { getCompileCacheDir } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import { shareLimits } from '../turbo/workers/decide/share-limits.ts';
import type { WorkerPool } from '../turbo/workers/worker-pool.ts';
import { canSharePorts } from './shared-port.ts';
import type { ServiceOptions, World } from './world.ts';

/** Variables that change how Node itself works, or which certificates it trusts when images are fetched. */
const PASSED_ON = ['NODE_COMPILE_CACHE', 'NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS', 'SSL_CERT_DIR', 'SSL_CERT_FILE', 'TZ'] as const;
const MOST = 64;

/** How many processes forward requests, with that of the controller. */
export async function countProcesses(
  { settings, log }: Pick<ServiceOptions, 'settings' | 'log'>,
  { runtime }: Pick<World, 'runtime'>,
): Promise<Result<number>> {
  const { SVC_WORKERS: wanted } = settings;
  if (wanted === 1) return ok(1);
  if (runtime.traits.network === 'pods') {
    const message = `Set "SVC_WORKERS" to 1 instead of "${wanted}" in a cluster, and run more replicas of the gateway`;
    return fail('stalled', 'SettingUnusable', message);
  }
  const count = wanted === 'auto' ? Math.min(MOST, availableParallelism()) : wanted;
  if (count === 1 || (await canSharePorts(settings.SVC_LISTEN))) return ok(count);
  log.warn(
    { workers: count },
    'Requests are forwarded by one process, because several cannot listen on one port on this system: "SVC_WORKERS" has no effect',
  );
  return ok(1);
}

export async function startWorkers(
  workers: WorkerPool,
  { settings, env }: Pick<ServiceOptions, 'settings' | 'env'>,
  processes: number,
  address: { readonly host: string; readonly port: number },
): Promise<void> {
  const shares = shareLimits(settings, processes);
  await workers.start({
    file: fileURLToPath(new URL('worker-main.ts', import.meta.url)),
    env: environmentOf(env),
    host: address.host,
    port: address.port,
    settings: shares.worker,
    mostBodyBytes: shares.workerBodyBytes,
  });
}

/** Nothing else of the environment: it may contain secrets, and settings come in a message. */
function environmentOf(env: ServiceOptions['env']): Readonly<Record<string, string>> {
  const own = getCompileCacheDir();
  const passedOn = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
  // Node adds a directory for its version.
  return { ...(own === undefined ? {} : { NODE_COMPILE_CACHE: dirname(own) }), ...Object.fromEntries(passedOn) };
}
