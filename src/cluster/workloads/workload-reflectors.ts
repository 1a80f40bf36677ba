/** Local copies of the objects that make up workloads, pruned to the fields that are used. */
import type { Reflector, ResourceType, Transform } from '../client/ports.ts';
import { createReflector, type RefreshableReflector, type ReflectorOptions } from '../client/reflector.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES } from '../client/decide/resource-path.ts';
import { LABELS, MANAGER } from '../../schema/pod/kube-fields.ts';
import { isServingChange, pruneDeployment, prunePlain, prunePod } from './decide/pod-facts.ts';

export type KubeReflectors = Readonly<Record<'deployments' | 'services' | 'configMaps' | 'pods', Reflector>>;

type ServingReflectors = Readonly<Record<'deployments' | 'pods', RefreshableReflector>>;

/** The caller starts the copies. `whileLeading` makes those of objects that only the leader repairs or removes. */
export function createKubeReflectors(
  options: Omit<ReflectorOptions, 'type' | 'labelSelector' | 'transform' | 'isUrgent'>,
  whileLeading: (open: () => RefreshableReflector) => Reflector = (open) => open(),
): KubeReflectors & ServingReflectors {
  const labelSelector = `${LABELS.managedBy}=${MANAGER},${LABELS.slot}`;
  // Requests wait for pods to become ready. The result of our own writes is known when they are answered.
  const open = (type: ResourceType, transform: Transform): RefreshableReflector =>
    createReflector({
      ...options,
      type,
      labelSelector,
      transform,
      isUrgent: (before, after) => type === PODS && isServingChange(before, after),
    });
  return {
    deployments: open(DEPLOYMENTS, pruneDeployment),
    services: whileLeading(() => open(SERVICES, prunePlain)),
    configMaps: whileLeading(() => open(CONFIG_MAPS, prunePlain)),
    pods: open(PODS, prunePod),
  };
}
