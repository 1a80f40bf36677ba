/** Derives the observed workload from a process's record and what the system reports of the process. Pure. */
import type { ObservedWorkload } from '../../../reconciler/ports.ts';
import { WorkloadId } from '../../../schema/words/names.ts';
import type { ProcessRecord } from '../process-records.ts';

/** What the system reports. `argv` and `env` are undefined if they cannot be read. */
export interface ProcessState {
  readonly phase: 'running' | 'stopping' | 'exited';
  readonly argv?: readonly string[] | undefined;
  readonly env?: readonly string[] | undefined;
}

/** The name of the launcher shell, until it becomes the program. */
export const LAUNCHER = 'svc-launch';

/** The variable in the environment of each process by which it is found again if its record was lost. */
export const MARK = 'INFERENCE_SVC_DEV_PROCESS';

export const processId = (record: Pick<ProcessRecord, 'name' | 'pid' | 'start'>): WorkloadId =>
  WorkloadId.parse(`${record.name}:${record.pid}:${record.start}`);

export const nameOfProcessId = (id: WorkloadId): string => id.split(':', 1)[0] ?? id;

export function observedProcess(record: ProcessRecord, { phase, argv, env }: ProcessState): ObservedWorkload {
  const { name, slot, revision, generation, startedAt, port, exit } = record;
  const launching = argv?.includes(LAUNCHER) === true;
  return {
    id: processId(record),
    name,
    slot,
    revision,
    generation,
    phase,
    startedAt,
    ...(phase === 'exited' ? { exit: { code: undefined, outOfMemory: false, at: startedAt, ...exit } } : {}),
    endpoints: phase === 'running' ? [{ host: '127.0.0.1', port: port.host }] : [],
    container: {
      imageId: undefined,
      argv: launching || argv === undefined ? undefined : argvOf(record, argv),
      env: launching || env === undefined ? undefined : envOf(record, env),
      mounts: undefined,
      devices: undefined,
      port,
    },
  };
}

/** A program may be a script after its interpreter, or replace itself, so only the last arguments are compared. */
function argvOf(record: ProcessRecord, actual: readonly string[]): readonly string[] {
  const [, ...wanted] = record.argv;
  const tail = actual.slice(Math.max(0, actual.length - wanted.length));
  const same = tail.length === wanted.length && tail.every((argument, index) => argument === wanted[index]);
  return same && actual.length > wanted.length ? record.argv : actual;
}

/** What every child receives, and what shells and wrapper scripts add. */
const AMBIENT: ReadonlySet<string> = new Set(['PATH', 'HOME', 'LANG', 'TMPDIR', 'PWD', 'OLDPWD', 'SHLVL', '_', MARK]);

function envOf(record: ProcessRecord, actual: readonly string[]): Readonly<Record<string, string>> {
  const entries = actual.flatMap((line): [string, string][] => {
    const equals = line.indexOf('=');
    return equals <= 0 ? [] : [[line.slice(0, equals), line.slice(equals + 1)]];
  });
  return Object.fromEntries(entries.filter(([name]) => name in record.env || !AMBIENT.has(name)));
}
