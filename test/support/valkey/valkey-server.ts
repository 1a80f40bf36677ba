/** A real Valkey or Redis of the machine, and suites that need one. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import { describeWith } from '../require/describe-with.ts';

const PROGRAM = ['valkey-server', 'redis-server'].find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);
const REASON = 'neither valkey-server nor redis-server is on the PATH';

export function describeWithValkey(name: string, suite: () => void): void {
  describeWith({ isThere: PROGRAM !== undefined, word: 'valkey', what: 'has a Valkey or a Redis', reason: REASON }, name, suite);
}

export interface ValkeyServer {
  readonly url: string;
  readonly port: number;
  /** Starts it again, without what it had counted. */
  start(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  kill(): Promise<void>;
  /** Sends a command, as a user of `valkey-cli` would. Returns the raw reply. */
  command(...words: readonly string[]): Promise<string>;
  dispose(): Promise<void>;
}

/** `options`: as on the command line. */
export async function startValkey(...options: readonly string[]): Promise<ValkeyServer> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'svc-valkey-'));
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const own = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir];
    const started = spawn(PROGRAM ?? 'valkey-server', [...own, ...options], { stdio: 'ignore' });
    child = started;
    await eventually('the server answers', async () => /^[+-]/.test(await command('PING').catch(() => '')), 20_000);
  }

  async function kill(): Promise<void> {
    const running = child;
    child = undefined;
    if (running === undefined) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGKILL');
    await ended;
  }

  async function command(...words: readonly string[]): Promise<string> {
    const socket = connect(port, '127.0.0.1').setTimeout(2000, () => socket.destroy(new Error('no answer')));
    try {
      socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`);
      return await new Promise((resolve, reject) => {
        socket.once('data', (bytes) => resolve(bytes.toString()));
        socket.once('error', reject);
        socket.once('close', () => reject(new Error('closed')));
      });
    } finally {
      socket.destroy();
    }
  }

  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    start,
    kill,
    command,
    signal: (signal) => void child?.kill(signal),
    async dispose() {
      child?.kill('SIGCONT');
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
