/** Opens what the service remembers of requests, changes and callers. */
import path from 'node:path';
import { createAuditTrail, type AuditTrail } from '../api/manage/audit-trail.ts';
import { createRequestRecord, reportTo } from '../api/manage/request-record.ts';
import { createChangePlans } from '../api/mcp/change-plans.ts';
import { createChangeRecord } from '../files/change-files.ts';
import type { BoardSlot } from '../reconciler/board.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { ReadEnergy } from '../schema/status/hardware.ts';
import type { SlotName } from '../schema/words/names.ts';
import { devicesOf } from '../usage/decide/share-energy.ts';
import { hourOf } from '../usage/decide/usage-rows.ts';
import { createEnergyMeter } from '../usage/energy-meter.ts';
import type { SlotFacts } from '../usage/pending-rows.ts';
import { createPrometheusUsage } from '../usage/prometheus-usage.ts';
import { createUsageRecorder, openUsageFile, type UsageRecorder } from '../usage/usage-recorder.ts';
import type { Controller } from './create-controller.ts';
import type { ServiceOptions, World } from './world.ts';

interface RecordParts {
  readonly world: World;
  readonly controller: Controller;
}

/** Changes are in memory in a cluster, where no directory outlives a replica. */
export function openRecords(options: ServiceOptions, parts: RecordParts) {
  const { settings, log } = options;
  const { loop, clock, captures: files } = parts.controller;
  const isCluster = parts.world.runtime.traits.network === 'pods';
  const changes = createChangeRecord(isCluster ? undefined : path.join(settings.SVC_STATE_DIR, 'audit', 'changes.jsonl'), log);
  const audit = createAuditTrail({
    log,
    note: loop.note,
    keep: changes.add,
    wallNow: clock.wallNow,
    attribute: parts.world.revisions?.attribute,
  });
  const requests = createRequestRecord(clock.wallNow);
  const usage = openUsage(options, parts);
  const plans = openPlans(settings, clock, audit);
  const captures = files && audit.captures(files);
  const listeners = [requests, usage, parts.controller.traces].flatMap((each) => each?.note ?? []);
  return { audit, changes, captures, requests, usage, plans, note: reportTo(...listeners) };
}

/** Replicas of a cluster share no file: metrics count there, and Prometheus adds them up. */
function openUsage({ settings, log }: ServiceOptions, { world, controller }: RecordParts): UsageRecorder | undefined {
  if (settings.SVC_USAGE === 'off') return undefined;
  const { board, clock } = controller;
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
  return world.readEnergy === undefined ? recorder : measureEnergy(recorder, { ...controller, read: world.readEnergy, factsOf });
}

interface EnergyParts extends Pick<Controller, 'board' | 'clock'> {
  readonly traffic: Pick<Controller['traffic'], 'ofSlot'>;
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
      meter.note(finished, hourOf(clock.wallNow()), finished.slot === undefined ? {} : factsOf(finished.slot));
    },
    sources: meter.sources,
    async close() {
      unsubscribe();
      meter.close();
      await recorder.close();
    },
  };
}

/** Undefined: agents cannot use the service. */
function openPlans(settings: Settings, { now, wallNow }: Pick<Controller['clock'], 'now' | 'wallNow'>, audit: AuditTrail) {
  if (settings.SVC_MCP === 'off') return undefined;
  const needsApproval = settings.SVC_MCP_APPROVE === 'human';
  return audit.plans(createChangePlans({ now: () => ({ ms: now(), wallMs: wallNow() }), needsApproval }));
}
