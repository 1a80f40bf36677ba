/**
 * Finds running processes of this state directory that have no record, because the directory was moved, deleted or restored from a backup while the service did not run.
 * Each process carries what its record would contain in its environment. Linux only; elsewhere nothing is found.
 */
import { readdir, stat } from 'node:fs/promises';
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { MARK } from './decide/process-facts.ts';
import { StoredRecord, type ProcessRecord } from './process-records.ts';
import type { ProcessTable } from './process-table.ts';

const Mark = z.object({
  stateDir: z.string(),
  record: StoredRecord.omit({ pid: true, start: true, bootId: true, env: true }),
  /** The values are in the environment itself. */
  envNames: z.array(z.string()),
});

/** Returns the environment variable that lets the process be found again. */
export function markOf(
  stateDir: string,
  record: Omit<ProcessRecord, 'pid' | 'start' | 'bootId' | 'exit'>,
): Readonly<Record<string, string>> {
  const { env, ...rest } = record;
  return { [MARK]: JSON.stringify({ stateDir, record: rest, envNames: Object.keys(env) } satisfies z.input<typeof Mark>) };
}

/** Returns one record for each process that was started with this state directory. Never throws. */
export async function findMarked(stateDir: string, table: ProcessTable): Promise<readonly ProcessRecord[]> {
  const pids = (await readdir('/proc').catch((): string[] => [])).flatMap((name) => (/^[1-9][0-9]*$/.test(name) ? [Number(name)] : []));
  const bootId = await table.bootId();
  const found = pids.map(async (pid): Promise<readonly ProcessRecord[]> => {
    // Anyone may put anything into the environment of a process of his own.
    const owner = await stat(`/proc/${pid}`).catch(() => undefined);
    if (owner === undefined || owner.uid !== process.getuid?.()) return [];
    const [env, identity] = await Promise.all([table.env(pid), table.read(pid)]);
    const marked = Mark.safeParse(parseJson(valueOf(env, MARK) ?? '')).data;
    // What the process has started inherits its environment, but does not lead a group.
    if (marked?.stateDir !== stateDir || identity === undefined || identity.zombie || identity.group !== pid) return [];
    const values = marked.envNames.map((name): [string, string] => [name, valueOf(env, name) ?? '']);
    return [{ ...marked.record, pid, start: identity.start, bootId, env: Object.fromEntries(values) }];
  });
  return (await Promise.all(found)).flat();
}

const valueOf = (env: readonly string[] | undefined, name: string): string | undefined =>
  env?.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
