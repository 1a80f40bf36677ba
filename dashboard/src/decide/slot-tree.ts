/** A slot from its declaration to its devices, as a tree of rows with their state and what is wrong there. Pure. */
import type { Explanation, Pod, Revision, Slot } from '../types.ts';
import { formatBytes, formatTime } from './format.ts';
import { describePod, groupConditions, isNotable, toneOfSlot } from './slot-facts.ts';

type Workload = Explanation['workloads'][number];
type Place = 'declaration' | 'revision' | 'workload' | 'device';
type Findings = Readonly<Partial<Record<Place, TreeRow['findings']>>>;
type Fact = 'generation' | 'at' | 'by' | 'restarts' | 'inFlight' | 'parked' | 'node' | 'backend' | 'reserved' | 'measured';

export interface TreeRow {
  readonly kind: Place | 'process' | 'container' | 'pod';
  readonly name: string;
  /** A word of the service, such as "running"; empty if there is nothing to tell. */
  readonly state: string;
  /** Empty or 0: not told. */
  readonly facts: Readonly<Partial<Record<Fact, string | number>>>;
  readonly findings: ReturnType<typeof groupConditions>;
  readonly rows: readonly TreeRow[];
}

export interface TreeInput {
  readonly slot: Slot;
  readonly explanation: Pick<Explanation, 'workloads' | 'memory'>;
  /** Newest first; empty if none are kept. */
  readonly revisions: readonly Pick<Revision, 'revision' | 'at' | 'who' | 'outcome'>[];
  readonly pods: readonly Pod[];
  readonly isCluster: boolean;
  /** Requests that wait for the slot. */
  readonly parked: number;
  /** Unix milliseconds, for times of day. */
  readonly now: number;
}

const placeOf = (reason: string): Place =>
  /^(Paused|Evaluat|RolledBack|PreviousServes)/.test(reason) ? 'revision' : /Memory|Device|GaveWay/.test(reason) ? 'device' : 'workload';

export function treeOf(input: TreeInput): TreeRow {
  const { slot, revisions, explanation, now } = input;
  const { workloads } = explanation;
  const [newest = { revision: slot.status.observed_generation, outcome: 'served', at: null, who: '' } as const] = revisions;
  const inForce = revisions.find(({ outcome }) => outcome === 'served' || outcome === 'at_rest') ?? newest;
  // What keeps a new revision from a workload is no problem of the one that serves.
  const isLate = newest.outcome === 'pending' && newest !== inForce && workloads.every(({ generation }) => generation < newest.revision);
  const found: Findings = Object.groupBy(groupConditions(slot.status.conditions.filter(isNotable)), ({ types, reason }) => {
    const isAbout = (...names: readonly string[]): boolean => types.some(({ type }) => names.includes(type));
    if (isAbout('SpecValid')) return 'declaration';
    return isLate && !isAbout('Ready', 'DriftDetected') ? 'revision' : placeOf(reason);
  });
  // The one that is not settled yet has the findings.
  const main = workloads.find(({ phase, serving }) => !serving && phase !== 'stopping') ?? workloads[0];
  const rows = [...new Set([inForce, newest])].map((revision): TreeRow => {
    const own = (workloads.length === 0 ? [undefined] : workloads).filter(
      (workload) => newest === inForce || (workload?.generation ?? 0) >= newest.revision === (revision === newest),
    );
    return row('revision', String(revision.revision), {
      state: revision === inForce && revision.outcome !== 'pending' ? 'in force' : revision.outcome.replaceAll('_', ' '),
      facts: { at: formatTime(revision.at, now), by: revision.who },
      findings: (revision === newest && found.revision) || [],
      rows: own.map((workload) => workloadRow(input, workload, workload === main ? found : undefined)),
    });
  });
  const state = found.declaration !== undefined ? 'invalid' : slot.spec === null ? 'absent' : 'valid';
  return row('declaration', input.isCluster ? `SlotSpec ${slot.name}` : `slots/${slot.name}.toml`, {
    state,
    facts: { generation: slot.generation },
    findings: found.declaration ?? [],
    rows,
  });
}

/** `found`: undefined for a workload beside the one that has what is told of the slot. */
function workloadRow(input: TreeInput, workload: Workload | undefined, found: Findings | undefined): TreeRow {
  const { slot, explanation, parked, pods, now } = input;
  const { name = '', phase, pid = null, container = null, message = null } = workload ?? {};
  const devices = deviceRows(input, workload, found);
  const process = pid ?? container;
  const told = found?.workload ?? [];
  return row('workload', name, {
    state: workload?.serving === true ? 'serving' : (phase ?? toneOfSlot(slot)),
    facts: {
      at: formatTime(workload?.started_at ?? null, now),
      inFlight: workload?.in_flight ?? 0,
      ...(found === undefined ? {} : { parked, restarts: slot.status.restarts }),
    },
    findings:
      message === null || told.some((each) => each.message.includes(message)) ? told : [...told, { types: [], reason: '', message }],
    rows: [
      ...pods.flatMap((pod) => (ownerOf(pod, explanation.workloads) === workload ? podRow(pod, now) : [])),
      ...(process === null ? devices : [row(pid === null ? 'container' : 'process', String(process), { rows: devices })]),
    ],
  });
}

/** The name of a pod begins with that of its workload, which may begin with that of another one. */
function ownerOf({ name }: Pod, workloads: readonly Workload[]): Workload | undefined {
  const owners = workloads.filter((workload) => name.startsWith(`${workload.name}-`));
  return owners.toSorted((one, other) => other.name.length - one.name.length)[0] ?? workloads[0];
}

function podRow(pod: Pod, now: number): TreeRow {
  const facts = { node: pod.node ?? '', at: formatTime(pod.created_at, now), restarts: pod.restarts };
  const findings = pod.message === '' ? [] : [{ types: [], reason: '', message: pod.message }];
  return row('pod', pod.name, { state: describePod(pod).word, facts, findings });
}

/** Measured sums are of all devices, so that these have one row. */
function deviceRows({ slot, explanation: { memory } }: TreeInput, workload: Workload | undefined, found: Findings | undefined) {
  const { host = [], device = [] } = Object.groupBy((found && memory?.placement) ?? [], (part) =>
    part.memory === 'host' ? 'host' : 'device',
  );
  const rows = [
    { parts: host, name: 'host', measured: workload?.memory_bytes ?? 0 },
    { parts: device, name: device.map((part) => part.memory).join(', ') || 'devices', measured: workload?.device_memory_bytes ?? 0 },
  ].flatMap(({ parts, name, measured }) => {
    const reserved = parts.reduce((sum, { bytes }) => sum + bytes, 0);
    if (reserved + measured === 0) return [];
    const state = memory === null || reserved === 0 ? '' : memory.admitted ? 'admitted' : 'not admitted';
    const [backend, bytes] = [slot.status.backend ?? '', (amount: number) => (amount === 0 ? '' : formatBytes(amount))];
    return row('device', name, { state, facts: { backend, reserved: bytes(reserved), measured: bytes(measured) } });
  });
  if (found?.device === undefined) return rows;
  const [first = row('device', slot.status.backend ?? ''), ...others] = rows;
  return [{ ...first, findings: found.device }, ...others];
}

function row(kind: TreeRow['kind'], name: string, details: Partial<TreeRow> = {}): TreeRow {
  const none = { state: '', facts: {}, findings: [], rows: [] };
  return { kind, name, ...none, ...details };
}
