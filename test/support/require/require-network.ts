/**
 * Suites that need two machines on a network of their own: network namespaces with a cable between them, which only root can make. For anyone else they are skipped
 * loudly, or fail where they are required.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWith } from './describe-with.ts';
import { relay } from '../network/relay.ts';

export interface NetworkHost {
  readonly name: string;
  readonly address: string;
  /** Starts a program of Node.js there. Its process id is that of the program. */
  spawn(args: readonly string[], env?: NodeJS.ProcessEnv): ChildProcess;
  /** Connects a port of the loopback here with the same one there, until the network ends. */
  forward(port: number): Promise<void>;
}

export interface Network {
  readonly hosts: readonly [NetworkHost, NetworkHost];
  /** Ends what still runs on the hosts, and removes them. */
  dispose(): Promise<void>;
}

/** The addresses exist only inside. */
const ADDRESSES = ['10.77.0.1', '10.77.0.2'] as const;
const CABLE = 'lan';
const RELAY = path.join(import.meta.dirname, '../network/relay.ts');

let networks = 0;

/** Throws if the machine does not allow it. */
export async function connectHosts(one: string, other: string): Promise<Network> {
  networks += 1;
  const namespaceOf = (name: string): string => `svc-test-${process.pid}-${networks}-${name}`;
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-network-'));
  const servers: Server[] = [];
  const dispose = async (): Promise<void> => {
    for (const server of servers) server.close();
    for (const namespace of [one, other].map(namespaceOf)) remove(namespace);
    await rm(directory, { recursive: true, force: true });
  };
  const host = (name: string, address: string): NetworkHost => {
    const start: NetworkHost['spawn'] = (args, env) => startIn(namespaceOf(name), name, args, env);
    return { name, address, spawn: start, forward: async (port) => void servers.push(await forward(start, directory, port)) };
  };
  try {
    for (const namespace of [one, other].map(namespaceOf)) ip('netns', 'add', namespace);
    ip('link', 'add', CABLE, 'netns', namespaceOf(one), 'type', 'veth', 'peer', 'name', CABLE, 'netns', namespaceOf(other));
    const hosts = [host(one, ADDRESSES[0]), host(other, ADDRESSES[1])] as const;
    for (const { name, address } of hosts) plugIn(namespaceOf(name), address);
    return { hosts, dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function plugIn(namespace: string, address: string): void {
  ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', CABLE);
  for (const link of ['lo', CABLE]) ip('-n', namespace, 'link', 'set', link, 'up');
  // Machines have a way to all other addresses, those of multicast included.
  ip('-n', namespace, 'route', 'add', 'default', 'dev', CABLE);
}

/** With all that still runs there. */
function remove(namespace: string): void {
  const { stdout } = spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' });
  for (const pid of (stdout ?? '').split('\n').filter((line) => line !== '')) spawnSync('kill', ['-KILL', pid]);
  spawnSync('ip', ['netns', 'delete', namespace]);
}

function ip(...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`"ip ${args.join(' ')}" failed: ${error?.message ?? stderr}`);
}

/** Each of these programs replaces itself by the next one. */
function startIn(namespace: string, name: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): ChildProcess {
  const inside = ['netns', 'exec', namespace, 'unshare', '--uts', 'sh', '-c', 'hostname "$0" && exec "$@"', name];
  return spawn('ip', [...inside, process.execPath, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
}

async function forward(start: NetworkHost['spawn'], directory: string, port: number): Promise<Server> {
  const socket = path.join(directory, `${port}-${process.hrtime.bigint()}.sock`);
  await untilListening(start([RELAY, socket, String(port)]));
  return await relay(port, socket);
}

/** Until a program has printed its first line. Throws with what it wrote if it ends instead. */
export async function untilListening(child: ChildProcess): Promise<ChildProcess> {
  let errors = '';
  child.stderr?.on('data', (text: Buffer) => (errors += text.toString()));
  const ended = once(child, 'close').then(() => Promise.reject(new Error(`It ended: ${errors}`)));
  await Promise.race([once(child.stdout ?? child, 'data'), ended]);
  ended.catch(() => undefined);
  return child;
}

const reason = await connectHosts('one', 'other').then(
  async (network) => await network.dispose(),
  (error: unknown) => String(error),
);

export function describeWithNetwork(name: string, suite: () => void): void {
  describeWith({ isThere: reason === undefined, word: 'netns', what: 'can make network namespaces', reason: reason ?? '' }, name, suite);
}
