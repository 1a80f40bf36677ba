/** Reads the system's process table. Pids are reused; a pid, its start time and the boot id together identify one process permanently. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface ProcessIdentity {
  /** Opaque; differs for another process with the same pid. */
  readonly start: string;
  /** The id of its process group; undefined where it is not known. */
  readonly group?: number;
  /** It has ended, but its parent has not read its exit status. */
  readonly zombie: boolean;
}

export interface ProcessTable {
  /** Returns undefined if there is no such process. */
  read(pid: number): Promise<ProcessIdentity | undefined>;
  /** Differs after each boot; empty on systems where start times are absolute. */
  bootId(): Promise<string>;
  /** Returns the arguments the process was started with; undefined if they cannot be read. */
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
      // The second field is the program's name in parentheses and may contain any character, so fields are counted from the last parenthesis.
      const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
      const [state, group, start] = [fields?.[0], fields?.[2], fields?.[19]];
      return state === undefined || start === undefined
        ? undefined
        : { start, group: Number(group), zombie: state === 'Z' || state === 'X' };
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
