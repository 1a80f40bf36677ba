/**
 * What a server was measured to use corrects what it was estimated to need: the most that was ever measured counts,
 * where that is more than a tenth above the estimate. It is never corrected downwards, since a server takes all of its
 * memory only when it is busy. Measured for one revision, so for one model with its settings; an edit of them begins
 * with the estimate again. Pure.
 */
import type { MemoryDemand } from '../../../providers/provider.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import type { ObservedWorkload } from '../../ports.ts';
import { computesWith } from './choose-backend.ts';

/** Peak measured memory of a slot's servers. */
export interface MeasuredMemory {
  readonly revision: string;
  readonly memory: NonNullable<ObservedWorkload['memoryBytes']>;
}

/** Estimates may be wrong by this much without consequences. */
const TOLERANCE = 1.1;

export function measure(before: MeasuredMemory | undefined, { revision, memoryBytes }: ObservedWorkload): MeasuredMemory | undefined {
  if (memoryBytes === undefined) return before;
  if (before?.revision !== revision) return { revision, memory: memoryBytes };
  const { host, mapped = 0, device = 0 } = before.memory;
  const more = memoryBytes.host > host || (memoryBytes.mapped ?? 0) > mapped || (memoryBytes.device ?? 0) > device;
  if (!more) return before;
  return {
    revision,
    memory: {
      host: Math.max(host, memoryBytes.host),
      mapped: Math.max(mapped, memoryBytes.mapped ?? 0),
      device: Math.max(device, memoryBytes.device ?? 0),
    },
  };
}

/** `estimate` itself where nothing is to be corrected. */
export function correctDemand(estimate: MemoryDemand, spec: SlotSpec, measured: MeasuredMemory | undefined): MemoryDemand {
  if (measured === undefined) return estimate;
  const { host, mapped = 0, device = 0 } = measured.memory;
  // The CPU backend maps the weights and hardly opens a device; a device backend maps the file only while copying.
  const used = computesWith(spec) === 'cpu' ? { hostBytes: host + mapped, deviceBytes: 0 } : { hostBytes: host, deviceBytes: device };
  const isMore = (now: number, before: number): boolean => now > before * TOLERANCE;
  if (!isMore(used.hostBytes, estimate.hostBytes) && !isMore(used.deviceBytes, estimate.deviceBytes)) return estimate;
  return {
    hostBytes: isMore(used.hostBytes, estimate.hostBytes) ? used.hostBytes : estimate.hostBytes,
    deviceBytes: isMore(used.deviceBytes, estimate.deviceBytes) ? used.deviceBytes : estimate.deviceBytes,
  };
}
