/** Small adapters between the parts of the service. */
import { mkdir, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describeListening, type ListenFacts } from '../api/server/decide/host-names.ts';
import type { Manage } from '../api/ports.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { LOCAL_SOCKET } from '../schema/words/access.ts';
import type { LocalSocket } from '../api/server/local-socket.ts';
import type { HttpApi } from '../api/server/server.ts';
import { untilFree } from './start-workers.ts';
import type { ServiceOptions } from './world.ts';
import type { Board } from '../reconciler/board.ts';
import type { Runtime, StatusSink } from '../reconciler/ports.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { Log } from '../platform/log.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';

export async function makeDirectories(settings: Settings): Promise<Result<void>> {
  for (const key of ['SVC_STATE_DIR', 'SVC_MODELS_DIR'] as const) {
    const directory = settings[key];
    try {
      await mkdir(directory, { recursive: true });
    } catch (error) {
      const fix = `make it writable, or set "${key}" to another directory (${messageOf(error)})`;
      return fail('stalled', 'SettingUnusable', `Cannot create "${directory}": ${fix}`);
    }
  }
  return ok(undefined);
}

/** Logs each timeline entry on the leader, except edits through the API: the audit trail logs those. */
export function createLogSink(log: Log, leads: () => boolean): StatusSink {
  return {
    write({ entries }) {
      if (!leads()) return;
      for (const { slot, kind, cause, message } of entries)
        if (kind !== 'edit') log[kind === 'failure' ? 'warn' : 'info']({ slot, kind, cause }, message);
    },
  };
}

/** The logs of the workload that serves a slot, otherwise of its newest workload. A deleted slot may still have one. */
export function createLogSource(board: Pick<Board, 'current'>, runtime: Runtime): Manage['logs'] {
  return async (name, options, signal) => {
    const slot = board.current().slots.get(name);
    const serving = slot?.targets[0]?.workload;
    if (serving !== undefined) return runtime.logs(serving, options, signal);
    const facts = await runtime.observe([], signal);
    const own = facts.ok ? facts.value.workloads.filter((workload) => workload.slot === name) : [];
    const [newest] = own.toSorted((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0));
    return newest && runtime.logs(newest.id, options, signal);
  };
}

export interface Listening extends ListenFacts {
  readonly bound: Settings['SVC_LISTEN'];
}

/** Fails with the setting to change. `shared`: other processes will listen there too. */
export async function listen(api: HttpApi, address: Settings['SVC_LISTEN'], shared: boolean): Promise<Result<Listening>> {
  try {
    if (shared) await untilFree(address);
    const port = await api.listen(shared ? { ...address, reusePort: true } : address);
    const bound = api.server.address();
    const host = typeof bound === 'object' && bound !== null ? bound.address : address.host;
    const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.map((one) => one.address));
    return ok({ ...describeListening(host, port, addresses), bound: { host, port } });
  } catch (error) {
    const code = codeOf(error);
    const failed = (problem: string) => fail('stalled', 'ListenFailed', `The address "${address.host}:${address.port}" ${problem}`);
    if (code === 'EADDRINUSE') return failed('is already in use: free it, or set "SVC_LISTEN" to another one');
    if (code === 'EACCES') return failed('requires privileges: set "SVC_LISTEN" to a port above 1023');
    return failed(`cannot be used: set "SVC_LISTEN" to an address of this machine (${messageOf(error)})`);
  }
}

/** Removes an old socket if authentication is off. The service works without it. */
export async function listenLocally(
  local: LocalSocket,
  api: HttpApi,
  { settings, log }: Pick<ServiceOptions, 'settings' | 'log'>,
): Promise<void> {
  const path = join(settings.SVC_STATE_DIR, LOCAL_SOCKET);
  try {
    if (settings.SVC_AUTH_ENABLED) await local.listen(path, api.server);
    else await rm(path, { force: true });
  } catch (error) {
    log.warn({ file: path }, `The socket "${path}" cannot be created: use a token with svcctl as root too (${messageOf(error)})`);
  }
}
