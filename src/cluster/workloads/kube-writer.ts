/** Writes of the reconciling replica: nothing once its term is over, and each result is in the copies before anybody looks again. */
import type { KubeApi, KubeManifest, KubeObject, Reflector, RemoveOptions, ResourceType } from '../client/ports.ts';
import { PODS } from '../client/resource-types.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { FIELD_MANAGER } from '../../schema/object-labels.ts';

export interface KubeWriter {
  apply(type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>>;
  /** Removed in the background, only while it is this very object. Already gone, or another one meanwhile, is success. */
  remove(type: ResourceType, object: KubeObject, options: Pick<RemoveOptions, 'graceSeconds'>, signal: AbortSignal): Promise<Result<void>>;
  /** Gives a pod that ends less time; it stays in the copy until it is gone. */
  hurry(pod: KubeObject, graceSeconds: number, signal: AbortSignal): Promise<Result<void>>;
}

export interface KubeWriterDeps {
  readonly api: KubeApi;
  /** The copy of a kind, where there is one. */
  readonly copyOf: (type: ResourceType) => Reflector | undefined;
  /** Aborts when this replica may not write any more. */
  readonly term: () => AbortSignal;
}

export function createKubeWriter({ api, copyOf, term }: KubeWriterDeps): KubeWriter {
  const during = async <T>(signal: AbortSignal, write: (own: AbortSignal) => Promise<Result<T>>): Promise<Result<T>> => {
    const ours = term();
    if (signal.aborted) return GIVEN_UP;
    if (ours.aborted) return NOT_LEADING;
    const result = await write(AbortSignal.any([signal, ours]));
    return !result.ok && ours.aborted && !signal.aborted ? NOT_LEADING : result;
  };
  const removeThis = async (
    type: ResourceType,
    { metadata }: KubeObject,
    options: RemoveOptions,
    own: AbortSignal,
  ): Promise<Result<void>> => {
    const { name, uid } = metadata;
    const removed = await api.remove(type, name, { propagation: 'Background', ...options, ...(uid === undefined ? {} : { uid }) }, own);
    return removed.ok || removed.failure.reason !== 'Conflict' ? removed : ok(undefined);
  };
  return {
    apply: async (type, manifest, signal) =>
      await during(signal, async (own) => {
        const applied = await api.apply(type, manifest, { fieldManager: FIELD_MANAGER }, own);
        if (applied.ok) copyOf(type)?.noteWritten(applied.value);
        return applied;
      }),
    remove: async (type, object, options, signal) =>
      await during(signal, async (own) => {
        const removed = await removeThis(type, object, options, own);
        const { name, uid } = object.metadata;
        if (removed.ok && uid !== undefined) copyOf(type)?.noteRemoved(name, uid);
        return removed;
      }),
    hurry: async (pod, graceSeconds, signal) => await during(signal, async (own) => await removeThis(PODS, pod, { graceSeconds }, own)),
  };
}

export const GIVEN_UP = fail('retry', 'Aborted', 'It was given up before it was done');
const NOT_LEADING = fail('retry', 'NotLeading', 'Another replica reconciles now: this one writes nothing');
