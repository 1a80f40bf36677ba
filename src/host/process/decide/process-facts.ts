/** Derives the observed workload from the record of a process and its state. Pure. */
import type { ObservedWorkload } from '../../../reconciler/ports.ts';
import { WorkloadId } from '../../../schema/words/names.ts';
import type { ProcessRecord } from '../process-records.ts';

/** `argv` and `env` are undefined if they cannot be read. */
export interface ProcessState {
  readonly phase: 'running' | 'stopping' | 'exited';
  readonly argv?: readonly string[] | undefined;
  readonly env?: readonly string[] | undefined;
}

/** Name of the launcher shell before it becomes the program. */
export const LAUNCHER = 'svc-launch';

/** Environment variable that identifies a process without a record. Descendants inherit it. */
export const MARK = 'INFERENCE_SVC_DEV_PROCESS';

/** Environment variable with the pid of the server itself. */
export const LEADER = 'INFERENCE_SVC_DEV_LEADER';

export const processId = (record: Pick<ProcessRecord, 'name' | 'pid' | 'start'>): WorkloadId =>
  WorkloadId.parse(`${record.name}:${record.pid}:${record.start}`);

/** Whether one is the server of the other, or both have one server. */
export const isOfOneStart = (one: Started, other: Started | undefined): boolean =>
  one.name === other?.name && one.startedAt === other.startedAt;
type Started = Pick<ProcessRecord, 'name' | 'startedAt'>;

export const nameOfProcessId = (id: WorkloadId): string => id.split(':', 1)[0] ?? id;

/** Null for a workload that is no process. */
export function pidOfProcessId(id: WorkloadId): number | null {
  const pid = Number(id.split(':', 2)[1]);
  return Number.isSafeInteger(pid) ? pid : null;
}

export function observedProcess(record: ProcessRecord, { phase, argv, env }: ProcessState): ObservedWorkload {
  const { name, slot, revision, generation, startedAt, port, exit } = record;
  // It is the process that was started. A wrapper script may have changed arguments and variables before `exec`.
  const isOurs = env?.some((line) => line.startsWith(`${MARK}=`)) === true;
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
      argv: isOurs ? record.argv : argv && argvOf(record, argv),
      env: isOurs ? record.env : env && envOf(record, env),
      mounts: undefined,
      devices: undefined,
      port,
    },
  };
}

/** Programs may be scripts after an interpreter, or replace themselves: only the last arguments are compared. */
function argvOf(record: ProcessRecord, actual: readonly string[]): readonly string[] {
  const [, ...wanted] = record.argv;
  const tail = actual.slice(Math.max(0, actual.length - wanted.length));
  const same = tail.length === wanted.length && tail.every((argument, index) => argument === wanted[index]);
  return same && actual.length > wanted.length ? record.argv : actual;
}

/** Only what the service set. */
function envOf(record: ProcessRecord, actual: readonly string[]): Readonly<Record<string, string>> {
  const entries = actual.map((line): [string, string] => {
    const equals = line.indexOf('=');
    return [line.slice(0, equals), line.slice(equals + 1)];
  });
  return Object.fromEntries(entries.filter(([name]) => name in record.env));
}
