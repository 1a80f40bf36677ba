/** Who has the memory of a machine: each device and the host, with the slots in it. Pure. */
import type { Explanation, Hardware } from '../types.ts';

type MemoryShare = NonNullable<Explanation['memory']>;

export interface SlotShare {
  readonly slot: string;
  readonly bytes: number;
}

export interface DeviceMemory {
  /** "host", or the id of a device. */
  readonly memory: string;
  readonly totalBytes: number;
  /** What the system says is in use, by anything; undefined if it does not say. */
  readonly usedBytes: number | undefined;
  /** What the controller has set aside, the largest first. */
  readonly slots: readonly SlotShare[];
  readonly reservedBytes: number;
  /** What neither slots have reserved nor other programs use. */
  readonly freeBytes: number;
  readonly othersBytes: number;
}

/** A device that computes in the memory of the host has no bar of its own. */
export function memoriesOf(hardware: Hardware, explanations: readonly Explanation[]): readonly DeviceMemory[] {
  const host = { memory: 'host', total: hardware.memory_total_bytes, free: hardware.memory_available_bytes };
  const devices = hardware.devices
    .filter(({ unified }) => !unified)
    .map((device) => ({ memory: device.id, total: device.memory_total_bytes, free: device.memory_free_bytes }));
  return [host, ...devices].flatMap(({ memory, total, free }): readonly DeviceMemory[] => {
    if (total === null) return [];
    const slots = explanations.flatMap((explanation) => sharesIn(memory, explanation)).toSorted((one, other) => other.bytes - one.bytes);
    const reservedBytes = slots.reduce((sum, { bytes }) => sum + bytes, 0);
    const short = explanations.map((explanation) => explanation.memory?.short).find((each) => each?.memory === memory);
    const usedBytes = free === null ? undefined : Math.max(0, total - free);
    // Slots rarely use all that is reserved for them, so this is the least that others have.
    const othersBytes = usedBytes === undefined ? Math.min(total, short?.others_bytes ?? 0) : Math.max(0, usedBytes - reservedBytes);
    return [
      {
        memory,
        totalBytes: total,
        usedBytes,
        slots,
        reservedBytes,
        othersBytes,
        freeBytes: Math.max(0, total - reservedBytes - othersBytes),
      },
    ];
  });
}

function sharesIn(memory: string, { name, memory: share }: Explanation): readonly SlotShare[] {
  if (share === null || !share.admitted) return [];
  const bytes = share.placement.filter((part) => part.memory === memory).reduce((sum, part) => sum + part.bytes, 0);
  return bytes > 0 ? [{ slot: name, bytes }] : [];
}

export interface AdmissionRow {
  readonly slot: string;
  readonly bytes: number;
  /** Where its bar begins: what the slots before it have. */
  readonly from: number;
  readonly admitted: boolean;
  readonly running: boolean;
  readonly priority: number;
  readonly because: MemoryShare['candidates'][number]['because'];
}

export interface AdmissionDrawing {
  readonly memory: string;
  readonly budgetBytes: number;
  /** What the widest row needs. */
  readonly wholeBytes: number;
  readonly rows: readonly AdmissionRow[];
}

/** The order in which slots are given memory; each begins where those before it end. Undefined if nothing is short. */
export function drawAdmission({ short, candidates }: MemoryShare): AdmissionDrawing | undefined {
  if (short === null || candidates.length === 0) return undefined;
  let given = 0;
  const rows = candidates.map((candidate): AdmissionRow => {
    const row = { ...candidate, from: given };
    if (candidate.admitted) given += candidate.bytes;
    return row;
  });
  const wholeBytes = Math.max(1, short.budget_bytes, ...rows.map(({ from, bytes }) => from + bytes));
  return { memory: short.memory, budgetBytes: short.budget_bytes, wholeBytes, rows };
}
