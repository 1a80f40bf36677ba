/** What one replica says of its traffic in the annotation of its Lease, and back from text. Times are ages, since clocks of replicas differ. Pure. */
import { z } from 'zod';
import { SlotName, WorkloadId } from '../../../schema/names.ts';
import { LABEL_PREFIX } from '../../../schema/object-labels.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

export const TRAFFIC_ANNOTATION = `${LABEL_PREFIX}/traffic`;

/** As of the moment of writing. Ages in milliseconds. */
export interface TrafficReport {
  readonly demand: ReadonlyMap<SlotName, { readonly waiting: number; readonly askedAgoMs: number }>;
  readonly use: ReadonlyMap<WorkloadId, { readonly inFlight: number; readonly usedAgoMs: number }>;
}

/** Slots and workloads in one report. All annotations of an object may have 256 KiB; a full report has about 200. */
export const REPORTED = 2000;
const Count = z.int().min(0);
const Pair = z.tuple([Count, Count]);
/** A later version adds keys; one that means something else by them has another number. */
const Annotation = z.object({ version: z.literal(1), demand: z.record(SlotName, Pair), use: z.record(WorkloadId, Pair) });

export function writeTraffic({ demand, use }: TrafficReport): string {
  return JSON.stringify({
    version: 1,
    demand: Object.fromEntries([...demand].map(([slot, { waiting, askedAgoMs }]) => [slot, [waiting, askedAgoMs]])),
    use: Object.fromEntries([...use].map(([workload, { inFlight, usedAgoMs }]) => [workload, [inFlight, usedAgoMs]])),
  });
}

/** Undefined: nothing that a replica writes. */
export function readTraffic(text: string | undefined): TrafficReport | undefined {
  const parsed = Annotation.safeParse(parseJson(text ?? ''));
  if (!parsed.success) return undefined;
  const demand = Object.entries(parsed.data.demand);
  const use = Object.entries(parsed.data.use);
  if (demand.length > REPORTED || use.length > REPORTED) return undefined;
  return {
    demand: new Map(demand.map(([slot, [waiting, askedAgoMs]]) => [SlotName.parse(slot), { waiting, askedAgoMs }])),
    use: new Map(use.map(([workload, [inFlight, usedAgoMs]]) => [WorkloadId.parse(workload), { inFlight, usedAgoMs }])),
  };
}
