/** How the memory of the host and of each device is divided between slots, other programs and free space. Pure. */
import type { Explanation, Hardware } from '../types.ts';

type MemoryShare = NonNullable<Explanation['memory']>;

export interface SlotShare {
  readonly slot: string;
  readonly bytes: number;
}

export interface DeviceMemory {
  /** "host", or a device id. */
  readonly memory: string;
  readonly totalBytes: number;
  /** Used by any program, as reported by the system; undefined if it reports nothing. */
  readonly usedBytes: number | undefined;
  /** Reservations, largest first. */
  readonly slots: readonly SlotShare[];
  readonly reservedBytes: number;
  /** Neither reserved by slots nor used by other programs. */
  readonly freeBytes: number;
  readonly othersBytes: number;
}

/** A device with unified memory has only what is set aside for it: the rest is the host's. */
export function memoriesOf(hardware: Hardware, explanations: readonly Explanation[]): readonly DeviceMemory[] {
  const host = { memory: 'host', total: hardware.memory_total_bytes, free: hardware.memory_available_bytes };
  const devices = hardware.devices.map((device) =>
    device.unified
      ? { memory: device.id, total: device.memory_dedicated_bytes, free: null }
      : { memory: device.id, total: device.memory_total_bytes, free: device.memory_free_bytes },
  );
  return [host, ...devices].flatMap(({ memory, total, free }): readonly DeviceMemory[] => {
    if (total === null || total === 0) return [];
    const slots = explanations.flatMap((explanation) => sharesIn(memory, explanation)).toSorted((one, other) => other.bytes - one.bytes);
    const reservedBytes = slots.reduce((sum, { bytes }) => sum + bytes, 0);
    const short = explanations.map((explanation) => explanation.memory?.short).find((each) => each?.memory === memory);
    const usedBytes = free === null ? undefined : Math.max(0, total - free);
    // A lower bound: slots rarely use their whole reservation.
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
  /** Offset of the bar: the bytes of the admitted slots before it. */
  readonly from: number;
  readonly admitted: boolean;
  readonly running: boolean;
  readonly priority: number;
  readonly because: MemoryShare['candidates'][number]['because'];
}

export interface AdmissionDrawing {
  readonly memory: string;
  readonly budgetBytes: number;
  /** Width of the chart: the end of the longest row, at least the budget, at most `MOST_BUDGETS` of it. */
  readonly wholeBytes: number;
  readonly rows: readonly AdmissionRow[];
}

/** One slot that needs a hundred times the budget would leave nothing to see of the others. */
const MOST_BUDGETS = 1.5;

/** Slots in the order of admission. Undefined if no memory is short. */
export function drawAdmission({ short, candidates }: MemoryShare): AdmissionDrawing | undefined {
  if (short === null || candidates.length === 0) return undefined;
  let given = 0;
  const rows = candidates.map((candidate): AdmissionRow => {
    const row = { ...candidate, from: given };
    if (candidate.admitted) given += candidate.bytes;
    return row;
  });
  const longest = Math.max(1, short.budget_bytes, ...rows.map(({ from, bytes }) => from + bytes));
  const wholeBytes = Math.min(longest, Math.max(1, short.budget_bytes) * MOST_BUDGETS);
  return { memory: short.memory, budgetBytes: short.budget_bytes, wholeBytes, rows };
}
