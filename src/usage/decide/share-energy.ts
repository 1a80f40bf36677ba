/** How much energy sensors have measured, and which part of it is a request's. Pure. */
import { ENERGY_DEVICES, type EnergyDevice, type SensorReading } from '../../schema/status/hardware.ts';

/** No processor and no GPU takes 3 kW. A counter that began anew looks like one that wrapped after more than that. */
const MOST_WATTS = 3000;
/** The smallest counter wraps after 65 kJ. Readings are seconds apart, unless the machine slept. */
const LONGEST_MS = 20_000;
const UJ_OF_MJ = 1000;
const MS_OF_SECOND = 1000;

export type Energy = Readonly<Record<EnergyDevice, number>>;

/** What the requests of a slot use; nothing of this machine if another one computes. */
export function devicesOf({
  provider,
  backend,
}: {
  readonly provider: string;
  readonly backend: string | undefined;
}): readonly EnergyDevice[] {
  if (provider === 'remote') return [];
  return backend === undefined || ['cpu', 'npu'].includes(backend) ? ['host'] : ENERGY_DEVICES;
}

/** Sums in millijoules. Undefined for a device without sensors, or whose sensors have all just appeared or vanished. */
export function energyBetween(
  before: readonly SensorReading[],
  after: readonly SensorReading[],
): Readonly<Partial<Record<EnergyDevice, number>>> {
  const sums: Partial<Record<EnergyDevice, number>> = {};
  for (const reading of after) {
    const former = before.find(({ source }) => source === reading.source);
    const measured = former && measuredBetween(former, reading);
    if (measured !== undefined) sums[reading.device] = (sums[reading.device] ?? 0) + measured;
  }
  return sums;
}

/** In millijoules; undefined if the readings do not tell it. */
function measuredBetween(before: SensorReading, after: SensorReading): number | undefined {
  const ms = after.at - before.at;
  if (!(ms > 0 && ms <= LONGEST_MS)) return undefined;
  const milliJoules =
    countedBetween(before, after) ?? (((before.powerUw ?? NaN) + (after.powerUw ?? NaN)) / 2 / UJ_OF_MJ / MS_OF_SECOND) * ms;
  return milliJoules >= 0 && milliJoules <= MOST_WATTS * ms ? milliJoules : undefined;
}

/** A counter that is lower than before has wrapped. */
function countedBetween({ energyUj: from }: SensorReading, { energyUj: to, rangeUj }: SensorReading): number | undefined {
  if (from === undefined || to === undefined) return undefined;
  return (to >= from ? to - from : (rangeUj ?? NaN) - from + to) / UJ_OF_MJ;
}

export interface MeasuredInterval {
  readonly ms: number;
  readonly milliJoules: number;
  /** How long servers worked on requests, added up. */
  readonly busyMs: number;
  /** Power of the device when it served nothing, and when it served something all the time. Undefined: unknown. */
  readonly idleWatts?: number | undefined;
  readonly busyWatts?: number | undefined;
}

/**
 * The power of each request: mean power, shared by those that ran at the same time. Where some ran for a part of the
 * interval, the rest of it was at rest and belongs to nobody. Between mean power and that of work, so that another
 * program does not count in full for a request of milliseconds.
 */
export function wattsOfRequest({ ms, milliJoules, busyMs, idleWatts = Infinity, busyWatts = 0 }: MeasuredInterval): number {
  if (!(busyMs > 0 && ms > 0)) return 0;
  const mean = milliJoules / ms;
  const workedMs = Math.min(busyMs, ms);
  const working = (milliJoules - Math.min(idleWatts, mean) * (ms - workedMs)) / workedMs;
  return (Math.min(working, Math.max(mean, busyWatts)) * workedMs) / busyMs;
}

/** Millijoules that a request would have used which ran from the first point to this one. */
export interface EnergyPoint extends Energy {
  readonly at: number;
}

/** What a request used that runs since `start`, up to the last point. Points are in the order of time. */
export function energySince(points: readonly EnergyPoint[], start: number, device: EnergyDevice): number {
  const index = points.findLastIndex(({ at }) => at <= start);
  const [from, to, last] = [points[Math.max(0, index)], points[index + 1], points.at(-1)];
  if (from === undefined || to === undefined || last === undefined) return 0;
  const share = index < 0 ? 0 : (start - from.at) / (to.at - from.at);
  return last[device] - from[device] - share * (to[device] - from[device]);
}
