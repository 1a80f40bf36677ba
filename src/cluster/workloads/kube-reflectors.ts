/** Copies of the objects that workloads are made of, with no more of each than is looked at. */
import type { Reflector, ResourceType } from '../client/ports.ts';
import { createReflector } from '../client/reflector.ts';
import type { ReflectorOptions } from '../client/reflector.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES } from '../client/resource-types.ts';
import { LABELS, MANAGER } from '../../schema/object-labels.ts';
import { pruneDeployment, prunePlain, prunePod } from './decide/kube-facts.ts';

export interface KubeReflectors {
  readonly deployments: Reflector;
  readonly services: Reflector;
  readonly configMaps: Reflector;
  readonly pods: Reflector;
}

/** Of everything in the namespace that the service made. To be started by the caller. */
export function createKubeReflectors(options: Omit<ReflectorOptions, 'type' | 'labelSelector' | 'transform' | 'isUrgent'>): KubeReflectors {
  const labelSelector = `${LABELS.managedBy}=${MANAGER},${LABELS.slot}`;
  const open = (
    type: ResourceType,
    transform: NonNullable<ReflectorOptions['transform']>,
    isUrgent: NonNullable<ReflectorOptions['isUrgent']>,
  ): Reflector => createReflector({ ...options, type, labelSelector, transform, isUrgent });
  // What we write ourselves is known as done when it is done.
  return {
    deployments: open(DEPLOYMENTS, pruneDeployment, () => false),
    services: open(SERVICES, prunePlain, () => false),
    configMaps: open(CONFIG_MAPS, prunePlain, () => false),
    pods: open(PODS, prunePod, () => true),
  };
}
