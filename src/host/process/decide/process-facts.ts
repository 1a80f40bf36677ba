/** A process's record and what the system says of it, as the reconciler's facts. Pure. */
import type { ObservedWorkload } from '../../../reconciler/ports.ts';
import { WorkloadId } from '../../../schema/names.ts';
import type { ProcessRecord } from '../process-records.ts';

/** What the system says. `argv` and `env` undefined: it does not tell. */
export interface ProcessSighting {
  readonly phase: 'running' | 'stopping' | 'exited';
  readonly argv: readonly string[] | undefined;
  readonly env: readonly string[] | undefined;
}

/** What the launcher shell calls itself until it becomes the program. */
export const LAUNCHER = 'svc-launch';

export const processId = (record: Pick<ProcessRecord, 'name' | 'pid' | 'start'>): WorkloadId =>
  WorkloadId.parse(`${record.name}:${record.pid}:${record.start}`);

export const nameOfProcessId = (id: WorkloadId): string => id.split(':', 1)[0] ?? id;

export function observedProcess(record: ProcessRecord, sighting: ProcessSighting): ObservedWorkload {
  const { exit } = record;
  const starting = sighting.argv?.includes(LAUNCHER) === true;
  return {
    id: processId(record),
    name: record.name,
    slot: record.slot,
    revision: record.revision,
    generation: record.generation,
    phase: sighting.phase,
    startedAt: record.startedAt,
    ...(sighting.phase === 'exited'
      ? {
          exit: {
            code: exit?.code,
            outOfMemory: false,
            at: exit?.at ?? record.startedAt,
            ...(exit?.message === undefined ? {} : { message: exit.message }),
          },
        }
      : {}),
    endpoints: sighting.phase === 'running' ? [{ host: '127.0.0.1', port: record.port.host }] : [],
    container: {
      imageId: undefined,
      argv: starting || sighting.argv === undefined ? undefined : argvOf(record, sighting.argv),
      env: starting || sighting.env === undefined ? undefined : envOf(record, sighting.env),
      mounts: undefined,
      devices: undefined,
      port: record.port,
    },
  };
}

/** A program may be a script, whose interpreter then stands in front, or replace itself: the arguments at the end are what counts. */
function argvOf(record: ProcessRecord, actual: readonly string[]): readonly string[] {
  const [, ...wanted] = record.argv;
  const tail = actual.slice(Math.max(0, actual.length - wanted.length));
  const same = tail.length === wanted.length && tail.every((argument, index) => argument === wanted[index]);
  return same && actual.length > wanted.length ? record.argv : actual;
}

/** What every child gets, and what shells and wrapper scripts add. */
const AMBIENT: ReadonlySet<string> = new Set(['PATH', 'HOME', 'LANG', 'TMPDIR', 'PWD', 'OLDPWD', 'SHLVL', '_']);

function envOf(record: ProcessRecord, actual: readonly string[]): Readonly<Record<string, string>> {
  const entries = actual.flatMap((line): [string, string][] => {
    const equals = line.indexOf('=');
    return equals <= 0 ? [] : [[line.slice(0, equals), line.slice(equals + 1)]];
  });
  return Object.fromEntries(entries.filter(([name]) => name in record.env || !AMBIENT.has(name)));
}
