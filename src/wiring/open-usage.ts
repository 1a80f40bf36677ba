/** Opens what the service remembers of the use of callers, and of the energy that they have used. */
import path from 'node:path';
import type { GatewayTraffic } from '../gateway/traffic/traffic.ts';
import type { Board, BoardSlot } from '../reconciler/board.ts';
import type { Clock } from '../reconciler/ports.ts';
import type { ReadEnergy } from '../schema/status/hardware.ts';
import type { SlotName } from '../schema/words/names.ts';
import { devicesOf } from '../usage/decide/share-energy.ts';
import { createEnergyMeter } from '../usage/energy-meter.ts';
import type { SlotFacts } from '../usage/pending-rows.ts';
import { createPrometheusUsage } from '../usage/prometheus-usage.ts';
import { createUsageRecorder, openUsageFile, type UsageRecorder } from '../usage/usage-recorder.ts';
import type { ServiceOptions, World } from './world.ts';

interface UsageParts {
  readonly board: Board;
  readonly clock: Clock;
  readonly traffic: Pick<GatewayTraffic, 'ofSlot'>;
}

/** Replicas of a cluster share no file: metrics count there, and Prometheus adds them up. */
export function openUsage({ settings, log }: ServiceOptions, world: World, parts: UsageParts): UsageRecorder | undefined {
  if (settings.SVC_USAGE === 'off') return undefined;
  const { board, clock } = parts;
  if (world.runtime.traits.network === 'pods') {
    const { SVC_PROMETHEUS_URL: url, SVC_NAMESPACE: namespace } = settings;
    return url === undefined ? undefined : createPrometheusUsage(url, namespace);
  }
  const factsOf = (name: SlotName): SlotFacts => {
    const slot = board.current().slots.get(name);
    return { model: slot?.model?.id ?? slot?.spec.model.default, price: slot?.spec.price };
  };
  const database = openUsageFile(path.join(settings.SVC_STATE_DIR, 'usage.sqlite'));
  const recorder = createUsageRecorder({ database, wallNow: clock.wallNow, now: clock.now, factsOf, log });
  return world.readEnergy === undefined ? recorder : measureEnergy(recorder, { ...parts, read: world.readEnergy, factsOf });
}

interface EnergyParts extends UsageParts {
  readonly read: ReadEnergy;
  readonly factsOf: (slot: SlotName) => SlotFacts;
}

/** Adds to usage what sensors of the machine tell of its energy. */
export function measureEnergy(
  recorder: ReturnType<typeof createUsageRecorder>,
  { board, clock, traffic, read, factsOf }: EnergyParts,
): UsageRecorder {
  const usedBy = ({ spec, status }: BoardSlot) => devicesOf({ provider: spec.provider, backend: status.backend });
  const meter = createEnergyMeter({
    ...clock,
    read,
    keep: recorder.keep,
    factsOf,
    devicesOf(name) {
      const slots: ReadonlyMap<string, BoardSlot> = board.current().slots;
      const slot = slots.get(name);
      return slot === undefined ? [] : usedBy(slot);
    },
    load() {
      const inFlight = { host: 0, gpu: 0 };
      let usesCuda = false;
      for (const slot of board.current().slots.values()) {
        usesCuda ||= slot.status.backend === 'cuda';
        for (const device of usedBy(slot)) inFlight[device] += traffic.ofSlot(slot.name).inFlight;
      }
      return { inFlight, usesCuda };
    },
  });
  // The board shows that requests have come, so that they need not.
  const unsubscribe = board.subscribe(({ slots }) => {
    for (const { status } of slots.values()) if (status.state === 'serving') return meter.begin();
  });
  return {
    ...recorder,
    note(finished) {
      recorder.note(finished);
      meter.note(finished);
    },
    sources: meter.sources,
    async close() {
      unsubscribe();
      meter.close();
      await recorder.close();
    },
  };
}
