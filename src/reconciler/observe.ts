/** One observation: all ports are asked concurrently, within a time limit. A missing answer is a fact, too. */
import type { ProviderRegistry } from '../providers/provider.ts';
import type { HostFacts } from '../schema/status/hardware.ts';
import { companionsOf } from '../schema/slot/model-options.ts';
import type { FailureRecords } from '../schema/status/slot-status.ts';
import type { Reason } from '../schema/status/reasons.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId, SlotName } from '../schema/words/names.ts';
import type {
  DesiredSlot,
  DesiredState,
  HostProbe,
  ImageReference,
  ModelPresence,
  ModelStore,
  Runtime,
  RuntimeFacts,
  SlotSource,
  Clock,
} from './ports.ts';
import type { Backend, ProviderKind } from '../schema/slot/provider-kinds.ts';
import { withBackends, type giveBackend } from './decide/facts/choose-backend.ts';
import { imageOf } from './decide/facts/gather.ts';
import { pause, retryRead } from '../platform/clock.ts';
import { messageOf } from '../platform/error-text.ts';

export interface Senses {
  readonly source: SlotSource;
  readonly runtime: Runtime;
  readonly models: ModelStore;
  readonly host: HostProbe;
  readonly providers: ProviderRegistry;
  /** The image in which a provider runs; undefined if none is known. Asked again in each pass. */
  readonly images: (kind: ProviderKind, backend: Backend) => ImageReference | undefined;
  readonly within: Deadline;
  /** Default: without memory. */
  readonly give?: typeof giveBackend;
}

export interface Observation {
  readonly runtime: Result<RuntimeFacts>;
  /** Undefined if the store did not answer. */
  readonly models: ReadonlyMap<ModelId, ModelPresence> | undefined;
  readonly host: HostFacts;
}

/** A healthy runtime lists its workloads within milliseconds; one that hangs must not stop the loop. */
const ANSWER_WITHIN_MS = 15_000;

export const NOTHING_KNOWN: HostFacts = { memoryTotalBytes: undefined, memoryAvailableBytes: undefined };

/** Returns the desired state that the source has now. Never throws. */
export async function readDesired({ source, within }: Senses, signal: AbortSignal): Promise<Result<DesiredState>> {
  return await within(ANSWER_WITHIN_MS, signal, async (own) => await source.read(own)).catch(failed('SlotsUnreadable'));
}

/** Returns what earlier controllers recorded. Never throws. */
export async function readRecords(
  { records, within, clock }: { readonly records: FailureRecords | undefined; readonly within: Deadline; readonly clock: Clock },
  signal: AbortSignal,
): Promise<Result<Awaited<ReturnType<FailureRecords['read']>>>> {
  if (records === undefined) return ok(new Map());
  // The first status that this controller writes replaces what is recorded, so a later pass could not read it.
  const read = async (own: AbortSignal) =>
    await retryRead(
      async () => ok(await records.read(own)),
      (ms) => pause(clock, ms, own),
    );
  return await within(ANSWER_WITHIN_MS, signal, read).catch(failed('InternalError'));
}

const failed = (reason: Reason) => (error: unknown) => fail('retry', reason, messageOf(error));

/** Returns what exists for these slots. `known`: the host as it was read last. Never throws. */
export async function observe(
  senses: Senses,
  slots: ReadonlyMap<SlotName, DesiredSlot>,
  known: HostFacts,
  signal: AbortSignal,
): Promise<Observation> {
  const { runtime, models, host, within } = senses;
  // First, because it is quick and decides which images are needed.
  const read = await within(ANSWER_WITHIN_MS, signal, async (own) => await host.read(own)).catch(() => NOTHING_KNOWN);
  const hostFacts = rememberHost(known, read);
  const images = new Map<string, ImageReference>();
  const byName: ModelId[] = [];
  const ids = new Set<ModelId>();
  for (const { spec } of withBackends(slots, senses, hostFacts.hardware).values()) {
    const { fetchesModels, runsElsewhere } = senses.providers[spec.provider] ?? {};
    const image = runtime.traits.images ? imageOf(spec, senses.images) : undefined;
    if (image !== undefined) images.set(image.reference, image);
    if (fetchesModels === true) byName.push(spec.model.default);
    if (runsElsewhere !== true) for (const id of [spec.model.default, ...companionsOf(spec)]) ids.add(id);
  }
  const [runtimeFacts, modelFacts] = await Promise.all([
    within(ANSWER_WITHIN_MS, signal, async (own) => await runtime.observe([...images.values()], own)).catch(failed('RuntimeUnreachable')),
    within(ANSWER_WITHIN_MS, signal, async (own) => await models.observe([...ids], own)).catch(() => undefined),
  ]);
  return { runtime: runtimeFacts, models: modelFacts && withNames(modelFacts, byName), host: hostFacts };
}

/** A model that its server fetches is as good as here, unless the store knows one of that name. */
function withNames(models: ReadonlyMap<ModelId, ModelPresence>, byName: readonly ModelId[]): ReadonlyMap<ModelId, ModelPresence> {
  const unknown = byName.filter((id) => models.get(id)?.kind !== 'present');
  if (unknown.length === 0) return models;
  const named = unknown.map((id): [ModelId, ModelPresence] => [id, { kind: 'present', facts: { id, hostPath: id } }]);
  return new Map([...models, ...named]);
}

/** What could not be read is as it was: a host that does not answer once must change no backend and no budget. */
function rememberHost(known: HostFacts, read: HostFacts): HostFacts {
  return {
    memoryTotalBytes: read.memoryTotalBytes ?? known.memoryTotalBytes,
    memoryAvailableBytes: read.memoryAvailableBytes ?? known.memoryAvailableBytes,
    hardware: read.hardware ?? known.hardware,
  };
}

/** Runs work that must finish within `ms` on the loop's clock. If it does not, aborts its signal and rejects. */
export type Deadline = <Value>(ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>) => Promise<Value>;

export function createDeadline(clock: Clock): Deadline {
  return async (ms, signal, work) => {
    const own = new AbortController();
    return await new Promise((resolve, reject) => {
      const end = (error: Error): void => {
        own.abort(error);
        reject(error);
      };
      const leave = (): void => end(new Error('The loop has ended'));
      const cancel = clock.at(clock.now() + ms, () => end(new Error(`No answer within ${ms / 1000} s`)));
      signal.addEventListener('abort', leave, { once: true });
      work(own.signal)
        .then(resolve, reject)
        .finally(() => {
          cancel();
          signal.removeEventListener('abort', leave);
        });
    });
  };
}
