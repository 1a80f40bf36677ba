/**
 * Attributes the energy of the machine to finished requests. Sensors are read every few seconds while something is
 * served, and never otherwise:
 *
 *   begin() ─► read ─► … 3 s … ─► read ─► the energy between them is shared by the time that each request ran
 *   note()  ─► what was used before the last reading is known; the time since then is kept until the next one
 */
import type { FinishedRequest } from '../gateway/exchange-deps.ts';
import { ENERGY_DEVICES, type EnergyDevice, type ReadEnergy, type SensorReading } from '../schema/status/hardware.ts';
import type { SlotName } from '../schema/words/names.ts';
import { energyBetween, energySince, wattsOfRequest, type Energy, type EnergyPoint } from './decide/share-energy.ts';
import { hourOf, noCounts, type UsageRow } from './decide/usage-rows.ts';
import { PendingRows, type SlotFacts } from './pending-rows.ts';

const EVERY_MS = 3000;
/** An hour. What a longer request used before that is lost. */
const MOST_POINTS = 1200;
/** A machine without sensors is asked again after this time. */
const RETRY_MS = 60_000;

export interface EnergyMeterDeps {
  readonly read: ReadEnergy;
  /** Monotonic milliseconds, and a timer of them. */
  readonly now: () => number;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  readonly at: (at: number, callback: () => void) => () => void;
  readonly devicesOf: (slot: string) => readonly EnergyDevice[];
  readonly factsOf: (slot: SlotName) => SlotFacts;
  /** Requests in flight that use each device, and whether a slot runs on CUDA. */
  readonly load: () => { readonly inFlight: Energy; readonly usesCuda: boolean };
  /** Takes rows that have energy and nothing else. */
  readonly keep: (rows: readonly UsageRow[]) => void;
}

interface Sample {
  readonly at: number;
  readonly readings: readonly SensorReading[];
  readonly inFlight: Energy;
}

export function createEnergyMeter({ read, now, wallNow, at, devicesOf, factsOf, load, keep }: EnergyMeterDeps) {
  const points: EnergyPoint[] = [];
  /** Requests that have ended since the last sample, by the time that they ran since then. */
  const ended = new PendingRows();
  /** How many of them had begun before it. */
  let endedOld = { host: 0, gpu: 0 };
  /** Mean power of the last interval without requests, and of the last one with a request all the time. */
  const learned: Record<EnergyDevice, { idleWatts?: number; busyWatts?: number }> = { host: {}, gpu: {} };
  let readings: readonly SensorReading[] = [];
  /** Undefined while nothing is measured. */
  let before: Sample | undefined;
  let cancel: (() => void) | undefined;
  let pausedUntil = Number.NEGATIVE_INFINITY;

  function begin(): void {
    if (cancel !== undefined || now() < pausedUntil) return;
    cancel = () => undefined;
    void measure();
  }

  async function measure(): Promise<void> {
    readings = await read({ nvidia: load().usesCuda });
    if (pausedUntil === Number.POSITIVE_INFINITY) return;
    const sample = { at: now(), readings, inFlight: load().inFlight };
    const isBusy = before === undefined ? true : settle(before, sample) || sample.inFlight.host > 0;
    const isBlind = readings.every(({ problem }) => problem !== undefined);
    if (isBlind) pausedUntil = sample.at + RETRY_MS;
    before = isBusy && !isBlind ? sample : undefined;
    cancel = before && at(sample.at + EVERY_MS, () => void measure());
  }

  /** Returns whether a request ran between the two. */
  function settle(from: Sample, to: Sample): boolean {
    const rows = ended.take();
    const ms = to.at - from.at;
    const measured = energyBetween(from.readings, to.readings);
    const watts = { host: 0, gpu: 0 };
    for (const device of ENERGY_DEVICES) {
      const own = rows.filter(({ slot }) => devicesOf(slot).includes(device));
      const lasting = Math.min(Math.max(0, from.inFlight[device] - endedOld[device]), to.inFlight[device]);
      // Nobody knows when those began that came later and are still in flight: half of the time is a fair guess.
      const inFlightMs = lasting * ms + ((to.inFlight[device] - lasting) * ms) / 2;
      const busyMs = own.reduce((sum, row) => sum + row.busyMs, inFlightMs);
      const milliJoules = measured[device];
      if (milliJoules === undefined) continue;
      watts[device] = wattsOfRequest({ ms, milliJoules, busyMs, ...learned[device] });
      if (busyMs === 0) learned[device].idleWatts = milliJoules / ms;
      if (lasting > 0) learned[device].busyWatts = milliJoules / ms;
      for (const row of own) row.milliJoules += watts[device] * row.busyMs;
    }
    addPoint(from.at, to.at, watts);
    store(rows);
    endedOld = { host: 0, gpu: 0 };
    return rows.length > 0;
  }

  /** Between two times of measuring, nothing is used. */
  function addPoint(from: number, to: number, watts: Energy): void {
    const last = points.at(-1) ?? { at: from, host: 0, gpu: 0 };
    if (points.length === 0 || last.at < from) points.push({ ...last, at: from });
    const ms = to - from;
    points.push({ at: to, host: last.host + watts.host * ms, gpu: last.gpu + watts.gpu * ms });
    points.splice(0, points.length - MOST_POINTS);
  }

  const store = (rows: readonly UsageRow[]): void =>
    keep(
      rows.flatMap(({ hour, caller, slot, model, currency, milliJoules }) =>
        milliJoules < 1 ? [] : [{ hour, caller, slot, model, currency, ...noCounts(), milliJoules: Math.round(milliJoules) }],
      ),
    );

  return {
    /** Something is served. Costs nothing if that is known. */
    begin,
    /** On the hot path. */
    note({ slot, caller, route, seconds, parkedSeconds = 0 }: FinishedRequest): void {
      // Machines without sensors pay no more.
      if (slot === undefined || now() < pausedUntil) return;
      const devices = devicesOf(slot);
      if (devices.length === 0) return;
      begin();
      if (before === undefined) return;
      const end = now();
      const start = end - (seconds - parkedSeconds) * 1000;
      let milliJoules = 0;
      if (start < before.at) {
        for (const device of devices) {
          endedOld[device] += 1;
          milliJoules += energySince(points, start, device);
        }
      }
      const ran = (end - Math.max(start, before.at)) / 1000;
      ended.add({ slot, caller, route, status: 200, seconds: ran }, hourOf(wallNow()), { ...factsOf(slot), milliJoules });
    },
    /** All sensors that were found when they were read last. */
    sources: (): readonly SensorReading[] => readings,
    /** What was used since the last reading is lost. */
    close(): void {
      pausedUntil = Number.POSITIVE_INFINITY;
      cancel?.();
      before = undefined;
      store(ended.take());
    },
  };
}
