/** Writes objects for the leader. Nothing is written after its term, and each result enters the local copies before anyone reads them again. */
import type { KubeApi, KubeManifest, KubeObject, ObjectMeta, Reflector, RemoveOptions, ResourceType } from '../client/ports.ts';
import { PODS } from '../client/resource-types.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { FIELD_MANAGER } from '../../schema/object-labels.ts';

/** With a uid: only this very object. */
type Target = Pick<ObjectMeta, 'name' | 'uid'>;

export type KubeWriter = ReturnType<typeof createKubeWriter>;

export interface KubeWriterDeps {
  readonly api: KubeApi;
  /** The local copy of a kind, if there is one. */
  readonly copyOf: (type: ResourceType) => Reflector | undefined;
  /** Aborts when this replica may no longer write. */
  readonly term: () => AbortSignal;
}

export function createKubeWriter({ api, copyOf, term }: KubeWriterDeps) {
  const duringTerm = async <T>(signal: AbortSignal, write: (writing: AbortSignal) => Promise<Result<T>>): Promise<Result<T>> => {
    const present = term();
    if (signal.aborted) return ABORTED;
    if (present.aborted) return NOT_LEADING;
    const result = await write(AbortSignal.any([signal, present]));
    return !result.ok && present.aborted && !signal.aborted ? NOT_LEADING : result;
  };
  const removeObject = async (
    type: ResourceType,
    { name, uid }: Target,
    options: RemoveOptions,
    signal: AbortSignal,
  ): Promise<Result<void>> =>
    await duringTerm(signal, async (writing) => {
      const precondition = uid === undefined ? {} : { uid };
      const removed = await api.remove(type, name, { ...options, ...precondition }, writing);
      return removed.ok || removed.failure.reason !== 'Conflict' ? removed : ok(undefined);
    });
  return {
    apply: async (type: ResourceType, manifest: KubeManifest, signal: AbortSignal): Promise<Result<KubeObject>> =>
      await duringTerm(signal, async (writing) => {
        const applied = await api.apply(type, manifest, { fieldManager: FIELD_MANAGER }, writing);
        if (applied.ok) copyOf(type)?.noteWritten(applied.value);
        return applied;
      }),
    /** Removes the object, and its dependents in the background. An object that is gone, or was replaced by another one, is a success. */
    async remove(
      type: ResourceType,
      target: Target,
      options: Pick<RemoveOptions, 'graceSeconds'>,
      signal: AbortSignal,
    ): Promise<Result<void>> {
      const removed = await removeObject(type, target, options, signal);
      if (removed.ok && target.uid !== undefined) copyOf(type)?.noteRemoved(target.name, target.uid);
      return removed;
    },
    /** Shortens the time that a terminating pod has left. The pod stays in the local copy until it is gone. */
    shortenGrace: async (pod: Target, graceSeconds: number, signal: AbortSignal): Promise<Result<void>> =>
      await removeObject(PODS, pod, { graceSeconds }, signal),
  };
}

export const ABORTED = fail('retry', 'Aborted', 'The operation was aborted before it finished');
const NOT_LEADING = fail('retry', 'NotLeading', 'Another replica is the leader now, so this one writes nothing');
