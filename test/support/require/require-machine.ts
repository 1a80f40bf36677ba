/**
 * Suites that need a machine with systemd, which they may change: SVC_TEST_SYSTEMD names a tool that makes Debian ones. Its verbs: `up bookworm|trixie` makes a new machine, boots
 * it and prints `export NAME=value` lines, of which `SVC_SYSTEMD` names the machine for the other verbs and `SVC_SYSTEMD_IP` is its address; `exec COMMAND…` runs a command
 * in it as root; `copy FROM TO`; `reboot`; `down`. Without the tool, the suites are skipped loudly, or fail where they are required.
 */
import { spawn } from 'node:child_process';
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

export async function bootMachine(suite: 'bookworm' | 'trixie'): Promise<Machine> {
  const settings = await succeed(await runTool(['up', suite], {}));
  const env = Object.fromEntries([...settings.matchAll(/^export ([A-Z_]+)=(.*)$/gm)].map(([, key = '', value = '']) => [key, value]));
  const run = async (command: readonly string[], input?: string) => await runTool(['exec', ...command], env, input);
  return {
    address: env['SVC_SYSTEMD_IP'] ?? '127.0.0.1',
    run,
    shell: async (script) => await succeed(await run(['bash', '-ec', script])),
    copy: async (from, to) => void (await succeed(await runTool(['copy', from, to], env))),
    reboot: async () => void (await succeed(await runTool(['reboot'], env))),
    down: async () => void (await succeed(await runTool(['down'], env))),
  };
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
