/** Starts a detached process that survives the controller. */
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { LAUNCHER } from './decide/process-facts.ts';
import { codeOf } from '../../platform/error-text.ts';

export interface Launched {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Lets it become the program. Until then it ends together with this controller, so that no unrecorded process runs. */
  go(): void;
  /** Ends it before `go()`. */
  drop(): void;
}

/** A constant: the program and its arguments are arguments of the shell and never parsed as shell text. */
const WAIT_THEN_EXEC = 'read -r go && exec "$@" </dev/null';

/** The launcher waits in a session of its own. Returns an error message if it could not be started. */
export function launch(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  logFile: number,
): Promise<Launched | { readonly error: string }> {
  return new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', WAIT_THEN_EXEC, LAUNCHER, ...command], {
      cwd: '/',
      detached: true,
      env,
      stdio: ['pipe', logFile, logFile],
    });
    child.once('error', (error) => resolve({ error: error.message }));
    // The process may have exited before `go()`.
    child.stdin?.on('error', () => undefined);
    child.once('spawn', () => {
      const { pid } = child;
      if (pid === undefined) return resolve({ error: 'It has no process id' });
      child.unref();
      return resolve({ child, pid, go: () => void child.stdin?.end('go\n'), drop: () => void child.stdin?.destroy() });
    });
  });
}

/** Like shells and containers, 128 plus the signal's number if there is no code. Node passes one of the two. */
export function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Returns the environment of a child, without the controller's `SVC_*` settings, which contain secrets. */
export function childEnv(
  own: Readonly<Record<string, string | undefined>>,
  workload: Readonly<Record<string, string>>,
): Record<string, string> {
  const inherited = ['PATH', 'HOME', 'LANG', 'TMPDIR'].flatMap((name): [string, string][] => {
    const value = own[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(inherited), ...workload };
}

/** Signals a process and everything it started; succeeds if it has exited. The caller has just checked that the group is ours. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes(codeOf(error))) throw error;
  }
}
