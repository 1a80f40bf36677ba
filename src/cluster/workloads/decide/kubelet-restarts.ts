/** Crashes of model servers, which the kubelet restarts with a growing delay. Pure. */
import type { WaitingReason, WorkloadExit } from '../../../reconciler/ports.ts';
import { isOver, isReady, isTerminating, parseTime, serverStatus, type ContainerExit, type PodFacts } from './pod-facts.ts';

/** Most servers print the cause of an exit in their last one or two lines. */
const LOG_TAIL_LINES = 2;
const LOG_TAIL_LENGTH = 300;

export const isCrashed = (pod: PodFacts): boolean => !isTerminating(pod) && !isOver(pod) && !isReady(pod) && crashOf(pod) !== undefined;

export function crashReason(pod: PodFacts): WaitingReason | undefined {
  const end = crashOf(pod);
  if (end === undefined) return undefined;
  const { code, outOfMemory, message = '' } = exitOf(pod, end);
  const why = message === '' ? '' : `: ${message}`;
  const reason = outOfMemory ? 'OutOfMemory' : 'Crashed';
  return { kind: 'other', reason, message: `A replica exited with code ${code ?? 'unknown'} and is being restarted${why}` };
}

/** With several pods, an exit counts only while no other pod is ready and the newest has not come back. */
export function lastExit([newest, ...others]: readonly PodFacts[]): WorkloadExit | undefined {
  if (newest === undefined || others.some(isReady)) return undefined;
  const end = others.length === 0 ? lastEndOf(newest) : crashOf(newest);
  return end === undefined ? undefined : exitOf(newest, end);
}

/** Until the restarted server has passed its startup probe, the pod counts as crashed. */
function crashOf(pod: PodFacts): ContainerExit | undefined {
  const status = serverStatus(pod);
  const isBackAgain = status?.state?.running !== undefined && status.started === true;
  return isBackAgain ? undefined : lastEndOf(pod);
}

function lastEndOf(pod: PodFacts): ContainerExit | undefined {
  const status = serverStatus(pod);
  return status?.state?.terminated ?? status?.lastState?.terminated;
}

function exitOf(pod: PodFacts, end: ContainerExit): WorkloadExit {
  const outOfMemory = end.reason === 'OOMKilled';
  const message = outOfMemory ? outOfMemoryMessage(pod) : exitMessage(end.message?.trim() ?? '');
  return {
    code: end.exitCode,
    outOfMemory,
    at: parseTime(end.finishedAt) ?? parseTime(pod.metadata.creationTimestamp) ?? 0,
    ...(message === '' ? {} : { message }),
    ...(end.containerID === undefined ? {} : { container: end.containerID }),
  };
}

function outOfMemoryMessage({ spec }: PodFacts): string {
  const limit = spec.containers.map(({ resources }) => resources?.limits?.['memory']).find((each) => each !== undefined);
  if (limit === undefined) return 'Killed because its node ran out of memory';
  return `Killed because it exceeded its memory limit of ${limit}: raise "resources.memory"`;
}

function exitMessage(text: string): string {
  const absent = /exec: "([^"]+)": (?:executable file not found|stat [^:]*: no such file)/.exec(text);
  if (absent !== null) return `The image does not contain the program "${absent[1]}": choose another toolbox image`;
  const lines = text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
  return lines.slice(-LOG_TAIL_LINES).join(' / ').slice(-LOG_TAIL_LENGTH);
}
