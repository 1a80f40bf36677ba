/** Removes Services and ConfigMaps of slots that were deleted with `--cascade=orphan`, on the leader. */
import type { KubeApi, KubeObject, Leadership, Reflector, ResourceType } from '../client/ports.ts';
import { CONFIG_MAPS, SERVICES } from '../client/decide/resource-path.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { Clock } from '../../reconciler/ports.ts';
import type { KubeReflectors } from './workload-reflectors.ts';
import { createKubeWriter } from './write-objects.ts';
import { findLeftovers } from './decide/select-pods.ts';

interface KubeLeftoversDeps {
  readonly api: KubeApi;
  readonly slots: Pick<Reflector, 'items' | 'health' | 'changes'>;
  readonly reflectors: KubeReflectors;
  readonly leadership: Pick<Leadership, 'leads' | 'term' | 'changes'>;
  readonly clock: Clock;
  readonly log: SourceLog;
}

/** Long enough for a slot that is deleted and created again, and for Kubernetes to delete what has an owner. */
const LOOK_AFTER_MS = 3000;
const RETRY_MS = 60_000;

export function createKubeLeftovers({ api, slots, reflectors, leadership, clock, log }: KubeLeftoversDeps) {
  const { services, configMaps, deployments, pods } = reflectors;
  const kinds: readonly (readonly [ResourceType, Reflector])[] = [
    [SERVICES, services],
    [CONFIG_MAPS, configMaps],
  ];
  const writer = createKubeWriter({ api, copyOf: (type) => kinds.find(([kind]) => kind === type)?.[1], term: leadership.term });
  let cancel: (() => void) | undefined;
  let looking = false;
  const failing = new Set<string>();

  const lookAfter = (ms: number): void => {
    cancel ??= clock.at(clock.now() + ms, () => {
      cancel = undefined;
      if (looking) return lookAfter(ms);
      looking = true;
      void look().finally(() => (looking = false));
    });
  };
  const look = async (): Promise<void> => {
    // An outdated copy could lack a slot that exists.
    const isKnown = [slots, services, configMaps, deployments, pods].every((copy) => copy.health().kind === 'current');
    if (!leadership.leads() || !isKnown) return;
    const find = (objects: Iterable<KubeObject>) =>
      findLeftovers(objects, { slots: slots.items(), deployments: deployments.items().values(), pods: pods.items().values() });
    for (const [type, copy] of kinds) {
      for (const object of find(copy.items().values())) {
        // The slot may have been declared again during the request before.
        if (find([object]).length > 0) await remove(type, object);
      }
    }
  };
  const remove = async (type: ResourceType, { metadata }: KubeObject): Promise<void> => {
    const { name } = metadata;
    const removed = await writer.remove(type, metadata, {}, leadership.term());
    if (removed.ok) {
      failing.delete(name);
      log.info({ name }, `Removed the ${type.kind} "${name}", because its slot was deleted with "--cascade=orphan"`);
      return;
    }
    const { reason, message } = removed.failure;
    if (reason === 'Aborted' || reason === 'NotLeading') return;
    if (!failing.has(name)) log.warn({ name, reason, error: message }, `Removing the ${type.kind} "${name}" of a deleted slot failed`);
    failing.add(name);
    lookAfter(RETRY_MS);
  };

  return {
    start(signal: AbortSignal): void {
      for (const copy of [slots, services, configMaps, deployments, pods]) copy.changes(() => lookAfter(LOOK_AFTER_MS), signal);
      leadership.changes(() => lookAfter(LOOK_AFTER_MS), signal);
      signal.addEventListener('abort', () => cancel?.(), { once: true });
    },
  };
}
