/** Which process a number means. A pid is reused; together with its start time and the boot it names one process for ever. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface ProcessIdentity {
  /** Opaque, equal for the same process only. */
  readonly start: string;
  /** Ended, but its parent has not asked how. */
  readonly zombie: boolean;
}

export interface ProcessTable {
  /** Undefined: there is no such process. */
  read(pid: number): Promise<ProcessIdentity | undefined>;
  /** Differs after each boot; empty where the system does not tell (start times are absolute there). */
  bootId(): Promise<string>;
  /** What the process was started with; undefined where it cannot be read. */
  argv(pid: number): Promise<readonly string[] | undefined>;
  env(pid: number): Promise<readonly string[] | undefined>;
}

export const createProcessTable = (): ProcessTable => (process.platform === 'linux' ? procTable() : psTable());

function procTable(): ProcessTable {
  const strings = async (path: string): Promise<readonly string[] | undefined> => {
    const text = await readFile(path, 'utf8').catch(() => '');
    return text === '' ? undefined : text.replace(/\0$/, '').split('\0');
  };
  return {
    async read(pid) {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
      // The second field is the program's name in brackets and may hold anything, so fields count from the last bracket.
      const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
      const [state, start] = [fields?.[0], fields?.[19]];
      return state === undefined || start === undefined ? undefined : { start, zombie: state === 'Z' || state === 'X' };
    },
    bootId: async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')).trim(),
    argv: (pid) => strings(`/proc/${pid}/cmdline`),
    env: (pid) => strings(`/proc/${pid}/environ`),
  };
}

function psTable(): ProcessTable {
  const run = promisify(execFile);
  return {
    async read(pid) {
      try {
        const { stdout } = await run('/bin/ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { env: { LC_ALL: 'C' } });
        const [state = '', ...start] = stdout.trim().split(/\s+/);
        return start.length === 0 ? undefined : { start: start.join(' '), zombie: state.startsWith('Z') };
      } catch {
        return undefined;
      }
    },
    bootId: () => Promise.resolve(''),
    argv: () => Promise.resolve(undefined),
    env: () => Promise.resolve(undefined),
  };
}
