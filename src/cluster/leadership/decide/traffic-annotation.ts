/** The traffic of one replica as text, in the annotation of its Lease. Times are ages, since the clocks of replicas differ. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { LABEL_PREFIX } from '../../../schema/object-labels.ts';

export const TRAFFIC_ANNOTATION = `${LABEL_PREFIX}/traffic`;

export interface ReportedActivity {
  /** Requests that wait for the slot, or that are in flight on the workload. */
  readonly count: number;
  /** Milliseconds since the last request, when the report was written. */
  readonly agoMs: number;
}

/** Most slots and most workloads in one report. All annotations of an object may have 256 KiB; a full report has about 200. */
export const REPORTED = 2000;

const Count = z.int().min(0);
const Activity = z.tuple([Count, Count]).transform(([count, agoMs]): ReportedActivity => ({ count, agoMs }));

const activities = <Name extends z.ZodType<string, string>>(name: Name) =>
  z
    .record(z.string(), z.unknown())
    .transform((record) => Object.entries(record))
    .pipe(z.array(z.tuple([name, Activity])).max(REPORTED))
    .transform((entries): ReadonlyMap<z.output<Name>, ReportedActivity> => new Map(entries));

/** A later version may add keys. If it changes the meaning of these keys, it has another number. */
const Annotation = z
  .object({ version: z.literal(1), demand: activities(SlotName), use: activities(WorkloadId) })
  .transform(({ demand, use }) => ({ demand, use }));

/** By slot, and by workload. */
export type TrafficReport = Readonly<z.output<typeof Annotation>>;

/** Returns undefined if the text is not a report. */
export function parseTraffic(text: string | undefined): TrafficReport | undefined {
  return Annotation.safeParse(parseJson(text ?? '')).data;
}

export function formatTraffic({ demand, use }: TrafficReport): string {
  return JSON.stringify({ version: 1, demand: pairsOf(demand), use: pairsOf(use) });
}

function pairsOf(activity: ReadonlyMap<string, ReportedActivity>): Readonly<Record<string, readonly [number, number]>> {
  return Object.fromEntries([...activity].map(([key, { count, agoMs }]) => [key, [count, agoMs]]));
}
