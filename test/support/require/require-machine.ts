/**
 * Suites that need a machine with systemd, which they may change: SVC_TEST_SYSTEMD names a tool that makes Debian ones. Its verbs: `up bookworm|trixie` makes a new machine, boots
 * it and prints `export NAME=value` lines, of which `SVC_SYSTEMD` names the machine for the other verbs and `SVC_SYSTEMD_IP` is its address; `exec COMMAND…` runs a command
 * in it as root; `copy FROM TO`; `reboot`; `down`. Without the tool, the suites are skipped loudly, or fail where they are required.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeDemoModels } from '../../../toolboxes/demo/demo-models.ts';
import { describeWith } from './describe-with.ts';

export interface Machine {
  readonly address: string;
  /** Runs a command as root. Its exit code and what it printed, errors included. */
  run(command: readonly string[], input?: string): Promise<Ran>;
  /** Runs a script of the shell. Throws if it fails. */
  shell(script: string): Promise<string>;
  copy(from: string, to: string): Promise<void>;
  reboot(): Promise<void>;
  down(): Promise<void>;
}

export interface Ran {
  readonly code: number;
  readonly output: string;
}

const TOOL = process.env['SVC_TEST_SYSTEMD'] ?? '';
const REASON = 'SVC_TEST_SYSTEMD names no tool that makes machines';

export function describeWithMachine(name: string, suite: () => void): void {
  describeWith({ isThere: TOOL !== '', word: 'systemd', what: 'has machines', reason: REASON }, name, suite);
}

/** A new machine has no lists of packages. */
export const APT_LISTS = 'ls /var/lib/apt/lists/*_Packages >/dev/null 2>&1 || apt-get update -qq >/dev/null';

/** Makes a new machine, once nobody else uses one of this name. */
export async function bootMachine(suite: 'bookworm' | 'trixie'): Promise<Machine> {
  const release = await holdMachine(suite);
  const settings = await succeed(await runTool(['up', suite], {}));
  const env = Object.fromEntries([...settings.matchAll(/^export ([A-Z_]+)=(.*)$/gm)].map(([, key = '', value = '']) => [key, value]));
  const run = async (command: readonly string[], input?: string) => await runTool(['exec', ...command], env, input);
  return {
    address: env['SVC_SYSTEMD_IP'] ?? '127.0.0.1',
    run,
    shell: async (script) => await succeed(await run(['bash', '-ec', script])),
    copy: async (from, to) => void (await succeed(await runTool(['copy', from, to], env))),
    reboot: async () => void (await succeed(await runTool(['reboot'], env))),
    down: async () => {
      await runTool(['down'], env).then(succeed).finally(release);
    },
  };
}

/** Two files of tests may want the same machine: the second one waits. The lock ends with this process, if not before. */
async function holdMachine(suite: string): Promise<() => void> {
  const holder = spawn('flock', [path.join(tmpdir(), `svc-machine-${suite}.lock`), 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  return () => void holder.stdin.end();
}

/**
 * One machine for all parts of a suite, with the release in `/root/dist`. A part finds no service, and packages that
 * parts before it have installed: only the first one finds a new machine.
 */
export function shareMachine(suite: 'bookworm' | 'trixie'): { readonly clean: () => Promise<Machine>; readonly down: () => Promise<void> } {
  let machine: Machine | undefined;
  const boot = async (): Promise<Machine> => {
    const booted = await bootMachine(suite);
    // What these machines install need not survive a power failure.
    await booted.shell('echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/unsafe-io');
    await booted.copy(process.env['SVC_TEST_RELEASE'] ?? '', '/root/dist');
    return booted;
  };
  return {
    clean: async () => {
      if (machine === undefined) return (machine = await boot());
      await machine.shell(REMOVE_SERVICE);
      return machine;
    },
    down: async () => await machine?.down(),
  };
}

/** As far as a part that failed has left it. */
const REMOVE_SERVICE = String.raw`
  if dpkg-query --show svc >/dev/null 2>&1; then apt-get purge -y -qq svc >/dev/null 2>&1; fi
  bash /root/dist/install.sh --uninstall --purge >/dev/null
  find /root -mindepth 1 -maxdepth 1 ! -name dist -exec rm -rf {} +
  rm -rf /var/lib/caddy/.local /var/lib/caddy/.config`;

/** Copies demo models to a directory of the machine. */
export async function copyModels(machine: Machine, to: string): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'svc-models-'));
  await writeDemoModels(folder);
  await machine.copy(folder, to);
  await rm(folder, { recursive: true });
}

async function runTool(args: readonly string[], env: Readonly<Record<string, string>>, input = ''): Promise<Ran> {
  return await new Promise((resolve, reject) => {
    const child = spawn(TOOL, args, { env: { ...process.env, ...env } });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
    child.stdin.end(input);
  });
}

async function succeed({ code, output }: Ran): Promise<string> {
  if (code !== 0) throw new Error(`Exit code ${code}: ${output}`);
  return output.trim();
}
