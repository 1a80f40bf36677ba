/** Starts one detached process that outlives the controller. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { LAUNCHER } from './decide/process-facts.ts';
import { codeOf } from '../../platform/error-text.ts';

export interface Launched {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Lets it become the program. Before that, the end of this controller ends it, so that no process runs that nobody wrote down. */
  go(): void;
  /** Ends it, before it was let go. */
  drop(): void;
}

/** A constant: program and arguments come as arguments of the shell and are never read as shell text. */
const WAIT_THEN_BECOME = 'read -r go && exec "$@" </dev/null';

/** The launcher waits in a session of its own; undefined with a message when it could not even be started. */
export function launch(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  logFile: number,
): Promise<Launched | { readonly error: string }> {
  return new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', WAIT_THEN_BECOME, LAUNCHER, ...command], {
      cwd: '/',
      detached: true,
      env,
      stdio: ['pipe', logFile, logFile],
    });
    child.once('error', (error) => resolve({ error: error.message }));
    // It may be gone before it is told.
    child.stdin?.on('error', () => undefined);
    child.once('spawn', () => {
      const { pid } = child;
      if (pid === undefined) return resolve({ error: 'it has no process id' });
      child.unref();
      return resolve({ child, pid, go: () => void child.stdin?.end('go\n'), drop: () => void child.stdin?.destroy() });
    });
  });
}

/** As shells and containers count it: 128 and the signal's number. */
export function exitCode(code: number | null, signal: NodeJS.Signals | null): number | undefined {
  if (code !== null) return code;
  return signal === null ? undefined : 128 + constants.signals[signal];
}

/** What a workload may see of the controller's environment; never its `SVC_*` settings, which hold secrets. */
export function childEnv(
  own: Readonly<Record<string, string | undefined>>,
  workload: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = ['PATH', 'HOME', 'LANG', 'TMPDIR'].flatMap((name): [string, string][] => {
    const value = own[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(kept), ...workload };
}

/** Signals a process and all it started; already gone is fine. The caller has just made sure that the group is ours. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes(codeOf(error))) throw error;
  }
}
