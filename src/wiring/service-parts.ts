/** Small adapters between the parts of the service. */
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import type { Server as NetServer } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describeListening, type ListenFacts } from '../api/server/decide/host-names.ts';
import type { Manage } from '../api/ports.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { LOCAL_SOCKET } from '../schema/words/access.ts';
import type { LocalSocket, SecondDoor } from '../api/server/local-socket.ts';
import type { createWyomingListener } from '../api/wyoming/wyoming-listener.ts';
import type { HttpApi } from '../api/server/server.ts';
import { canSharePorts, untilFree } from './start-workers.ts';
import type { ServiceOptions } from './world.ts';
import type { Board } from '../reconciler/board.ts';
import { isoTime } from '../api/manage/decide/slot-view.ts';
import { pidOfProcessId } from '../host/process/decide/process-facts.ts';
import type { ObservedWorkload, Runtime, StatusSink, Traffic } from '../reconciler/ports.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { Log } from '../platform/log.ts';
import { announce } from '../remote/mdns.ts';
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

/** The workloads of a slot as the last pass observed them, with the requests that they have now. */
export function createWorkloadSource({ board, loop, traffic }: WorkloadFacts, { traits }: Pick<Runtime, 'traits'>): Manage['workloads'] {
  return (name) => {
    const own = loop.workloads().filter(({ slot }) => slot === name);
    if (own.length === 0) return [];
    const targets = new Set(
      board
        .current()
        .slots.get(name)
        ?.targets.map(({ workload }) => workload),
    );
    const activity = traffic.read().workloads;
    return own.map(({ id, memoryBytes: used, startedAt, waitingReason, missing, exit, ...workload }) => ({
      ...workload,
      serving: targets.has(id),
      startedAt: startedAt === undefined ? null : isoTime(startedAt),
      pid: traits.kind === 'process' ? pidOfProcessId(id) : null,
      container: traits.kind === 'podman' ? id.slice(0, SHORT_ID) : null,
      inFlight: activity.get(id)?.inFlight ?? 0,
      memoryBytes: used === undefined ? null : used.host + (used.mapped ?? 0),
      deviceMemoryBytes: used?.device,
      message: waitingReason?.message ?? missing?.message ?? exit?.message,
    }));
  };
}

/** As podman prints it. */
const SHORT_ID = 12;

interface WorkloadFacts {
  readonly board: Pick<Board, 'current'>;
  readonly loop: { workloads(): readonly ObservedWorkload[] };
  readonly traffic: Pick<Traffic, 'read'>;
}

export interface Listening extends ListenFacts {
  readonly bound: Settings['SVC_LISTEN'];
  /** URL of the management API for users on this machine. */
  readonly managementUrl: string;
}

type WyomingListener = Pick<ReturnType<typeof createWyomingListener>, 'listen'>;
type ListenOptions = Pick<Settings, 'SVC_LISTEN' | 'SVC_MANAGEMENT_LISTEN'> & { readonly shared: boolean };

/** Fails with the setting to change. `shared`: workers will listen at `SVC_LISTEN` too, and may have so until now. */
export async function listen(
  api: HttpApi,
  door: Pick<SecondDoor, 'open'>,
  { SVC_LISTEN: address, SVC_MANAGEMENT_LISTEN: second, shared }: ListenOptions,
): Promise<Result<Listening>> {
  const main = await listening('SVC_LISTEN', address, async () => {
    // Several listeners take several connections at a time. They would share the port with another service, too.
    const several = await canSharePorts(address);
    if (several) await untilFree(address, shared ? undefined : 0);
    await api.listen(several ? { ...address, reusePort: true } : address);
    return api.server.address();
  });
  if (!main.ok || second === undefined) return main;
  const management = await listening('SVC_MANAGEMENT_LISTEN', second, async () => {
    const opened = await door.open(api.server, async (listener) => void (await once(listener.listen(second), 'listening')));
    return opened.address();
  });
  if (!management.ok) await api.close(0);
  return management.ok ? ok({ ...main.value, managementUrl: management.value.url }) : management;
}

/** Does nothing unless `SVC_WYOMING` is set. Warns if other machines can reach it: nobody has to authenticate. */
export async function listenForWyoming(
  wyoming: WyomingListener,
  { settings: { SVC_WYOMING: address }, log }: Pick<ServiceOptions, 'settings' | 'log'>,
): Promise<Result<void>> {
  if (address === undefined) return ok(undefined);
  const opened = await listening('SVC_WYOMING', address, async () => wyoming.listen(address));
  if (!opened.ok) return opened;
  const { host, port } = opened.value.bound;
  log.info({ host, port }, 'Listening for Wyoming');
  if (!opened.value.isLocal)
    log.warn({ host, port }, 'Anyone who reaches the port of "SVC_WYOMING" can use the slots for speech: let only Home Assistant through');
  return ok(undefined);
}

/** Does nothing unless `SVC_MDNS` is set. The service works without the network. */
export function announceService(
  { bound, isLocal }: Pick<Listening, 'bound' | 'isLocal'>,
  { settings: { SVC_MDNS: isOn, SVC_PUBLIC_URL: url }, version, log }: Pick<ServiceOptions, 'settings' | 'version' | 'log'>,
  signal: AbortSignal,
): void {
  if (!isOn) return;
  if (isLocal && url === undefined)
    return log.warn(
      {},
      'Only this machine can reach the service, so it is not announced: set "SVC_PUBLIC_URL", or "SVC_LISTEN" to an address of the network',
    );
  const { port } = bound;
  const what = { name: `${hostname().split('.')[0]}-${port}`, port, txt: { version, ...(url === undefined ? {} : { url }) } };
  let last: string | undefined;
  const onFault = (problem: string): void => {
    if (problem !== last) log.warn({}, `The service cannot be announced on the local network: ${problem}`);
    last = problem;
  };
  void announce(what, onFault, signal).catch((error: unknown) => onFault(messageOf(error)));
}

async function listening(
  setting: 'SVC_LISTEN' | 'SVC_MANAGEMENT_LISTEN' | 'SVC_WYOMING',
  address: Settings['SVC_LISTEN'],
  open: () => Promise<ReturnType<NetServer['address']>>,
): Promise<Result<Listening>> {
  try {
    const bound = await open();
    const { address: host, port } = typeof bound === 'object' && bound !== null ? bound : { address: address.host, port: address.port };
    const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.map((one) => one.address));
    const facts = describeListening(host, port, addresses);
    return ok({ ...facts, managementUrl: facts.url, bound: { host, port } });
  } catch (error) {
    const code = codeOf(error);
    const failed = (problem: string) => fail('stalled', 'ListenFailed', `The address "${address.host}:${address.port}" ${problem}`);
    if (code === 'EADDRINUSE') return failed(`is already in use: free it, or set "${setting}" to another one`);
    if (code === 'EACCES') return failed(`requires privileges: set "${setting}" to a port above 1023`);
    return failed(`cannot be used: set "${setting}" to an address of this machine (${messageOf(error)})`);
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
