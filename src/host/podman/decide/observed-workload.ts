/** Derives the observed workload from what podman reports of a container. Pure. `podman-container.ts` is the opposite direction. */
import type { ObservedWorkload } from '../../../reconciler/ports.ts';
import { Revision, SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { containerFacts } from './container-facts.ts';
import { LABELS } from '../../../schema/object-labels.ts';
import { INSTANCE_LABEL } from './podman-container.ts';
import type { ContainerInspect, InspectContext } from './podman-inspect.ts';

/** Returns undefined if the labels are not those of this installation: the container belongs to something else. */
export function observedWorkload(container: ContainerInspect, context: InspectContext): ObservedWorkload | undefined {
  const labels = container.Config.Labels ?? {};
  const slot = SlotName.safeParse(labels[LABELS.slot]);
  const revision = Revision.safeParse(labels[LABELS.revision]);
  const generation = Number(labels[LABELS.generation] ?? 'none');
  if (labels[INSTANCE_LABEL] !== context.instance) return undefined;
  if (!slot.success || !revision.success || !Number.isSafeInteger(generation)) return undefined;
  const phase = phaseOf(container.State.Status);
  const facts = containerFacts(container, context);
  return {
    id: WorkloadId.parse(container.Id),
    name: container.Name,
    slot: slot.data,
    revision: revision.data,
    generation,
    phase,
    startedAt: timeOf(container.State.StartedAt),
    ...(phase === 'exited' ? { exit: exitOf(container) } : {}),
    endpoints: phase === 'running' && facts.port !== undefined && facts.port.host > 0 ? [{ host: '127.0.0.1', port: facts.port.host }] : [],
    container: facts,
  };
}

function phaseOf(status: string): ObservedWorkload['phase'] {
  if (status === 'created' || status === 'configured' || status === 'initialized') return 'created';
  if (status === 'stopping' || status === 'removing') return 'stopping';
  if (status === 'exited' || status === 'stopped' || status === 'dead') return 'exited';
  return 'running';
}

/** Unix milliseconds. Podman writes the year 1 for "never". */
function timeOf(text: string): number | undefined {
  const at = Date.parse(text);
  return Number.isFinite(at) && at > 0 ? at : undefined;
}

function exitOf(container: ContainerInspect): NonNullable<ObservedWorkload['exit']> {
  const { State } = container;
  const message = State.Error === '' ? killedMessage(container) : State.Error;
  return {
    code: State.ExitCode,
    outOfMemory: State.OOMKilled,
    at: timeOf(State.FinishedAt) ?? timeOf(State.StartedAt) ?? 0,
    ...(message === undefined ? {} : { message }),
  };
}

/** With cgroup v1, podman does not report that the kernel killed a process for its memory; exit code 137 is the only trace. */
function killedMessage(container: ContainerInspect): string | undefined {
  if (container.State.ExitCode !== 137 || container.State.OOMKilled) return undefined;
  return container.HostConfig.Memory > 0
    ? 'Killed (signal 9): manually, or because it exceeded its memory limit; in that case raise "resources.memory"'
    : 'Killed (signal 9): manually, or by the kernel because the host ran out of memory';
}
