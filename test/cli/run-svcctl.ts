/** Runs the real command line in a separate process. */
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly input?: string;
  /** Undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Starts the program, with these arguments for Node.js. Default: here. */
  readonly start?: (args: readonly string[], env: NodeJS.ProcessEnv) => ChildProcess;
}

const ENTRY = path.resolve(import.meta.dirname, '../../src/cli/svcctl.mjs');
/** Tests that have a home of their own need not compile everything again. */
const COMPILED = path.resolve(import.meta.dirname, '../../node_modules/.cache/svcctl');

export function startSvcctl(args: readonly string[], options: RunOptions = {}): ChildProcess {
  // Settings of the test run must not affect the program.
  const own = Object.entries(process.env).filter(([key]) => !/^(SVC|NODE_|NO_COLOR|FORCE_COLOR)/.test(key));
  const env = { ...Object.fromEntries(own), NODE_COMPILE_CACHE: COMPILED, ...options.env };
  if (options.start !== undefined) return options.start([ENTRY, ...args], env);
  return spawn(process.execPath, [ENTRY, ...args], { env, cwd: options.cwd, stdio: ['pipe', 'pipe', 'pipe'] });
}

export function svcctl(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = startSvcctl(args, options);
    let out = '';
    let err = '';
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err }));
    child.stdin?.end(options.input ?? '');
  });
}
