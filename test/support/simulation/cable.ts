/**
 * The cable between one controller and its ports. It keeps a journal of the calls, and it can be cut: then the controller is as good as killed. Nothing
 * that it waits for comes any more, nothing that it still does reaches anything, and what it had asked for may or may not happen.
 */
import type { ProbeIo } from '../../../src/providers/provider.ts';
import type { Clock, HostProbe, ModelStore, Runtime, SlotSource, Traffic, Wake } from '../../../src/reconciler/ports.ts';
import type { FailureRecords } from '../../../src/schema/status/slot-status.ts';
import type { Failure, Result } from '../../../src/schema/words/failure.ts';
import { messageOf } from '../../../src/platform/error-text.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import type { Call, Journal } from './journal.ts';

export interface Cable {
  readonly clock: Clock;
  readonly isCut: () => boolean;
  cut(): void;
  source(source: SlotSource): SlotSource;
  models(models: ModelStore): ModelStore;
  runtime(runtime: Runtime): Runtime;
  host(host: HostProbe): HostProbe;
  records(records: FailureRecords): FailureRecords;
  probes(probes: ProbeIo): ProbeIo;
  traffic(traffic: Traffic): Traffic;
  changes(port: string, changes: (wake: Wake, signal: AbortSignal) => void): (wake: Wake, signal: AbortSignal) => void;
  /** The same promise until the cable is cut, from when on it never settles. */
  through<Value>(promise: Promise<Value>): Promise<Value>;
}

type Details = Pick<Call, 'name' | 'key' | 'signal'> & Partial<Pick<Call, 'workload' | 'id'>>;

export function createCable(clock: Clock, journal: Journal): Cable {
  let cut = false;
  const dead = new AbortController();
  const through = async <Value>(promise: Promise<Value>): Promise<Value> =>
    await new Promise((resolve, reject) => {
      promise.then(
        (value) => void (cut || resolve(value)),
        (error: unknown) => void (cut || reject(error instanceof Error ? error : new Error(messageOf(error)))),
      );
    });
  /** What has not left the process ends with it. A request that another program carries out is not taken back. */
  const withOwn = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, dead.signal]);
  const record = async <Value>(details: Details, ask: () => Promise<Result<Value>>): Promise<Result<Value>> => {
    if (cut) return await new Promise<never>(() => undefined);
    const call: Call = { ...details, beganAt: clock.now(), endedAt: undefined, failure: undefined, started: undefined };
    journal.called(call);
    const end = (failure: Failure | undefined): void => {
      if (cut) return;
      call.endedAt = clock.now();
      call.failure = failure;
      journal.answered(call);
    };
    return await through(
      ask().then(
        (result) => {
          if (result.ok && details.name === 'apply') call.started = WorkloadId.safeParse(result.value).data;
          end(result.ok ? undefined : result.failure);
          return result;
        },
        (error: unknown) => {
          end({ kind: 'retry', reason: 'InternalError', message: messageOf(error) });
          throw error;
        },
      ),
    );
  };
  const changes: Cable['changes'] = (port, listen) => (wake, signal) => {
    journal.listenedTo.add(port);
    listen((withinMs) => {
      if (cut) return;
      journal.woken(withinMs ?? 0);
      wake(withinMs);
    }, signal);
  };
  return {
    isCut: () => cut,
    through,
    changes,
    cut() {
      cut = true;
      dead.abort();
    },
    clock: { now: () => clock.now(), wallNow: () => clock.wallNow(), at: (at, callback) => clock.at(at, () => void (cut || callback())) },
    source: (source) => ({
      read: async (signal) => await record({ name: 'read', key: 'read', signal }, async () => await source.read(signal)),
      settle: (slot, settlement) => (cut ? undefined : source.settle?.(slot, settlement)),
      changes: changes('source', (wake, signal) => source.changes(wake, signal)),
    }),
    models: (models) => ({
      root: models.root,
      observe: async (ids, signal) => await through(models.observe(ids, signal)),
      pull: async (id, onProgress, signal) =>
        await record({ name: 'pullModel', key: `pullModel:${id}`, signal }, async () =>
          models.pull(id, (progress) => void (cut || onProgress(progress)), withOwn(signal)),
        ),
      changes: changes('models', (wake, signal) => models.changes(wake, signal)),
    }),
    runtime: (runtime) => ({
      traits: runtime.traits,
      observe: async (images, signal) =>
        await record({ name: 'observe', key: 'observe', signal }, async () => await runtime.observe(images, signal)),
      pull: async (image, onProgress, signal) =>
        await record({ name: 'pullImage', key: `pullImage:${image.reference}`, signal }, async () =>
          runtime.pull(image, (progress) => void (cut || onProgress(progress)), withOwn(signal)),
        ),
      apply: async (workload, signal) =>
        await record(
          { name: 'apply', key: `apply:${workload.slot}`, signal, workload },
          async () => await runtime.apply(workload, withOwn(signal)),
        ),
      stop: async (id, options, signal) =>
        await record({ name: 'stop', key: `stop:${id}`, signal, id }, async () => await runtime.stop(id, options, withOwn(signal))),
      work: async (id) => await through(runtime.work?.(id) ?? Promise.resolve(undefined)),
      async *logs(id, options, signal) {
        const lines = runtime.logs(id, options, signal)[Symbol.asyncIterator]();
        for (;;) {
          const next = await through(lines.next());
          if (next.done === true) return;
          journal.logged(id, next.value.text);
          yield next.value;
        }
      },
      changes: changes('runtime', (wake, signal) => runtime.changes(wake, signal)),
    }),
    host: (host) => ({ read: async (signal) => await through(host.read(signal)) }),
    records: (records) => ({
      async read(signal) {
        if (!cut) journal.recalling();
        const recorded = await through(records.read(signal));
        journal.recalled(recorded);
        return recorded;
      },
    }),
    probes: (probes) => ({ request: async (...call) => await through(probes.request(...call)) }),
    traffic: (traffic) => ({
      read: () => traffic.read(),
      abort: (workload) => void (cut || traffic.abort(workload)),
      changes: changes('traffic', (wake, signal) => traffic.changes(wake, signal)),
    }),
  };
}
