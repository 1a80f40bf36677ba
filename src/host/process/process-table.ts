/**
 * Reads the process table. Pids are reused; pid, start time and boot id identify a process. Every method rejects if the
 * system does not answer: an error is never taken for the absence of a process.
 */
import { execFile } from 'node:child_process';
import { readFile, readdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { ifThere } from '../../files/write-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { codeOf } from '../../platform/error-text.ts';
import { inTurns } from '../../platform/semaphore.ts';
import { LAUNCHER, LEADER, MARK } from './decide/process-facts.ts';
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
  /** Undefined without such a process, or if this user may not read them. */
  argv(pid: number): Promise<readonly string[] | undefined>;
  env(pid: number): Promise<readonly string[] | undefined>;
  /** The processes of this user; undefined if environments cannot be read on this system. */
  list(): Promise<readonly number[] | undefined>;
}

export const createProcessTable = (): ProcessTable => (process.platform === 'linux' ? procTable() : psTable());

function procTable(): ProcessTable {
  const text = async (path: string): Promise<string | undefined> => await ifThere(readFile(`/proc/${path}`, 'utf8'));
  const strings = async (path: string): Promise<readonly string[] | undefined> => {
    const found = await text(path).catch((error: unknown) => {
      if (['EACCES', 'EPERM'].includes(codeOf(error))) return undefined;
      throw error;
    });
    return found === undefined || found === '' ? undefined : found.replace(/\0$/, '').split('\0');
  };
  return {
    async read(pid) {
      const found = await text(`${pid}/stat`);
      // The second field, the program name in parentheses, may contain any character: fields are counted from the last
      // one.
      const fields = found?.slice(found.lastIndexOf(')') + 2).split(' ');
      const [state, group, start] = [fields?.[0], fields?.[2], fields?.[19]];
      return state === undefined || start === undefined
        ? undefined
        : { start, group: Number(group), zombie: state === 'Z' || state === 'X' };
    },
    bootId: async () => (await text('sys/kernel/random/boot_id'))?.trim() ?? '',
    argv: (pid) => strings(`${pid}/cmdline`),
    env: (pid) => strings(`${pid}/environ`),
    async list() {
      const pids = (await readdir('/proc')).filter((name) => /^[1-9][0-9]*$/.test(name)).map(Number);
      // Other users may put anything into the environment of their processes.
      const owners = await inTurns(pids, async (pid) => (await ifThere(stat(`/proc/${pid}`)))?.uid);
      return pids.filter((_, index) => owners[index] === process.getuid?.());
    },
  };
}

function psTable(): ProcessTable {
  const run = promisify(execFile);
  return {
    async read(pid) {
      const { stdout } = await run('/bin/ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { env: { LC_ALL: 'C' } }).catch(
        (error: unknown) => {
          // `ps` itself ran and found nothing.
          if (typeof error === 'object' && error !== null && 'code' in error && error.code === 1) return { stdout: '' };
          throw error;
        },
      );
      const [state = '', ...start] = stdout.trim().split(/\s+/);
      return start.length === 0 ? undefined : { start: start.join(' '), zombie: state.startsWith('Z') };
    },
    bootId: () => Promise.resolve(''),
    argv: () => Promise.resolve(undefined),
    env: () => Promise.resolve(undefined),
    list: () => Promise.resolve(undefined),
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

/** A running process whose environment contains the record of a workload: its server, or a descendant of that. */
interface MarkedProcess {
  readonly record: ProcessRecord;
  readonly group: number | undefined;
  /** A launcher has not become its server yet. */
  readonly role: 'server' | 'launcher' | 'descendant';
}

/**
 * Finds running processes of this state directory, with or without a record: that may be lost after the directory was
 * moved, deleted or restored from a backup. Undefined if the system does not show environments.
 */
export async function findMarked(stateDir: string, table: ProcessTable): Promise<readonly MarkedProcess[] | undefined> {
  const pids = await table.list();
  if (pids === undefined) return undefined;
  const bootId = await table.bootId();
  const found = await inTurns(pids, async (pid): Promise<readonly MarkedProcess[]> => {
    const env = await table.env(pid);
    const marked = Mark.safeParse(parseJson(valueOf(env, MARK) ?? '')).data;
    if (marked?.stateDir !== stateDir) return [];
    const [identity, argv] = await Promise.all([table.read(pid), table.argv(pid)]);
    if (identity === undefined || identity.zombie) return [];
    const values = marked.envNames.map((name): [string, string] => [name, valueOf(env, name) ?? '']);
    const record = { ...marked.record, pid, start: identity.start, bootId, env: Object.fromEntries(values) };
    // Descendants inherit it and may lead groups of their own. Servers of version 0.2 do not name a leader.
    const leader = valueOf(env, LEADER);
    const isServer = Number(leader ?? identity.group) === pid;
    const isLauncher = leader === undefined && argv?.includes(LAUNCHER) === true;
    return [{ record, group: identity.group, role: isLauncher ? 'launcher' : isServer ? 'server' : 'descendant' }];
  });
  return found.flat();
}

const valueOf = (env: readonly string[] | undefined, name: string): string | undefined =>
  env?.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
