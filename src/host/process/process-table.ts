/** Reads the process table. Pids are reused; pid, start time and boot id identify a process. */
import { execFile } from 'node:child_process';
import { readFile, readdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { MARK } from './decide/process-facts.ts';
import { StoredRecord, type ProcessRecord } from './process-records.ts';

interface ProcessIdentity {
  /** Opaque; differs for another process with the same pid. */
  readonly start: string;
  /** Process group; undefined if unknown. */
  readonly group?: number;
  /** Ended, but not reaped. */
  readonly zombie: boolean;
}

export interface ProcessTable {
  /** Undefined if there is no such process. */
  read(pid: number): Promise<ProcessIdentity | undefined>;
  /** Differs after each boot; empty if start times are absolute. */
  bootId(): Promise<string>;
  /** Undefined if they cannot be read. */
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
      // The second field, the program name in parentheses, may contain any character: fields are counted from the last
      // one.
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

const Mark = z.object({
  stateDir: z.string(),
  record: StoredRecord.omit({ pid: true, start: true, bootId: true, env: true }),
  /** Values are in the environment itself. */
  envNames: z.array(z.string()),
});

/** Returns the environment variable by which the process is found again. */
export function markOf(
  stateDir: string,
  record: Omit<ProcessRecord, 'pid' | 'start' | 'bootId' | 'exit'>,
): Readonly<Record<string, string>> {
  const { env, ...rest } = record;
  return { [MARK]: JSON.stringify({ stateDir, record: rest, envNames: Object.keys(env) } satisfies z.input<typeof Mark>) };
}

/**
 * Finds running processes of this state directory without a record, for example after the directory was moved, deleted
 * or restored from a backup. Their environment contains the record. Linux only. Never throws.
 */
export async function findMarked(stateDir: string, table: ProcessTable): Promise<readonly ProcessRecord[]> {
  const pids = (await readdir('/proc').catch((): string[] => [])).flatMap((name) => (/^[1-9][0-9]*$/.test(name) ? [Number(name)] : []));
  const bootId = await table.bootId();
  const found = pids.map(async (pid): Promise<readonly ProcessRecord[]> => {
    // Other users may put anything into the environment of their processes.
    const owner = await stat(`/proc/${pid}`).catch(() => undefined);
    if (owner === undefined || owner.uid !== process.getuid?.()) return [];
    const [env, identity] = await Promise.all([table.env(pid), table.read(pid)]);
    const marked = Mark.safeParse(parseJson(valueOf(env, MARK) ?? '')).data;
    // Descendants inherit the environment, but do not lead a group.
    if (marked?.stateDir !== stateDir || identity === undefined || identity.zombie || identity.group !== pid) return [];
    const values = marked.envNames.map((name): [string, string] => [name, valueOf(env, name) ?? '']);
    return [{ ...marked.record, pid, start: identity.start, bootId, env: Object.fromEntries(values) }];
  });
  return (await Promise.all(found)).flat();
}

const valueOf = (env: readonly string[] | undefined, name: string): string | undefined =>
  env?.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
