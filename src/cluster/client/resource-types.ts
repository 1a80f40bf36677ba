/** The resource types that the program reads or writes. */
import { SLOT_RESOURCE } from '../../schema/slot-resource.ts';
import type { ResourceType } from './ports.ts';

const core = (plural: string, kind: string): ResourceType => ({ group: '', version: 'v1', plural, kind, namespaced: true });

export const SLOT_SPECS: ResourceType = {
  group: SLOT_RESOURCE.group,
  version: SLOT_RESOURCE.version,
  plural: SLOT_RESOURCE.plural,
  kind: SLOT_RESOURCE.kind,
  namespaced: true,
};
export const DEPLOYMENTS: ResourceType = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', namespaced: true };
export const PODS = core('pods', 'Pod');
export const SERVICES = core('services', 'Service');
export const CONFIG_MAPS = core('configmaps', 'ConfigMap');
export const CLAIMS = core('persistentvolumeclaims', 'PersistentVolumeClaim');
export const EVENTS = core('events', 'Event');
export const LEASES: ResourceType = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true };
export const RESOURCE_CLAIM_TEMPLATES: ResourceType = {
  group: 'resource.k8s.io',
  version: 'v1',
  plural: 'resourceclaimtemplates',
  kind: 'ResourceClaimTemplate',
  namespaced: true,
};
export const DEVICE_CLASSES: ResourceType = {
  group: 'resource.k8s.io',
  version: 'v1',
  plural: 'deviceclasses',
  kind: 'DeviceClass',
  namespaced: false,
};
