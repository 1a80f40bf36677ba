/** A source, a model store, a host and probes that are slow, hang, throw, fail or lie. */
import type { ProbeIo } from '../../../../src/providers/provider.ts';
import type { Clock, DesiredState, HostProbe, ModelStore, SlotSource } from '../../../../src/reconciler/ports.ts';
import type { FailureRecords } from '../../../../src/schema/status/slot-status.ts';
import { fail } from '../../../../src/schema/words/failure.ts';
import { suffer, type Disturb } from './disturbance.ts';

/** How long a source that lies shows what it showed before. */
const STALE_MS = 6000;

/** Its lie is an old answer, as of a cache that lags behind. */
export function disturbSource(source: SlotSource, clock: Clock, disturb: Disturb): SlotSource {
  let old: DesiredState | undefined;
  let staleUntil = 0;
  return {
    ...source,
    async read(signal) {
      const disturbance = disturb('source');
      await suffer(clock, disturbance);
      if (disturbance?.kind === 'fail') return fail('retry', 'SlotsUnreadable', disturbance.message);
      if (disturbance?.kind === 'lie') staleUntil = clock.now() + STALE_MS;
      if (old !== undefined && clock.now() < staleUntil) return { ok: true, value: old };
      const read = await source.read(signal);
      if (read.ok) old = read.value;
      return read;
    },
  };
}

/** Its lie is that a model is missing. */
export function disturbModels(models: ModelStore, clock: Clock, disturb: Disturb): ModelStore {
  return {
    ...models,
    async observe(ids, signal) {
      const disturbance = disturb('models');
      await suffer(clock, disturbance);
      if (disturbance?.kind === 'lie') return new Map(ids.map((id) => [id, { kind: 'missing', message: 'The store lies' }]));
      return await models.observe(ids, signal);
    },
  };
}

/** Its lie is about the memory that is free. */
export function disturbHost(host: HostProbe, clock: Clock, disturb: Disturb): HostProbe {
  return {
    async read(signal) {
      const disturbance = disturb('host');
      await suffer(clock, disturbance);
      const facts = await host.read(signal);
      return disturbance?.kind === 'lie' ? { ...facts, memoryAvailableBytes: 500 } : facts;
    },
  };
}

export function disturbRecords(records: FailureRecords, clock: Clock, disturb: Disturb): FailureRecords {
  return {
    async read(signal) {
      await suffer(clock, disturb('records'));
      return await records.read(signal);
    },
  };
}

export function disturbProbes(probes: ProbeIo, clock: Clock, disturb: Disturb): ProbeIo {
  return {
    async request(...call) {
      await suffer(clock, disturb('probe'));
      return await probes.request(...call);
    },
  };
}
