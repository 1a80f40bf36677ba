/** The resource types that the program reads or writes. */
import { SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import type { ResourceType } from './ports.ts';

const v1 = (group: string, plural: string, kind: string): ResourceType => ({ group, version: 'v1', plural, kind, namespaced: true });

export const SLOT_SPECS: ResourceType = { ...SLOT_RESOURCE, namespaced: true };
export const DEPLOYMENTS = v1('apps', 'deployments', 'Deployment');
export const PODS = v1('', 'pods', 'Pod');
export const SERVICES = v1('', 'services', 'Service');
export const CONFIG_MAPS = v1('', 'configmaps', 'ConfigMap');
export const SECRETS = v1('', 'secrets', 'Secret');
export const CLAIMS = v1('', 'persistentvolumeclaims', 'PersistentVolumeClaim');
export const DISRUPTION_BUDGETS = v1('policy', 'poddisruptionbudgets', 'PodDisruptionBudget');
export const EVENTS = v1('', 'events', 'Event');
export const LEASES = v1('coordination.k8s.io', 'leases', 'Lease');
export const RESOURCE_CLAIM_TEMPLATES = v1('resource.k8s.io', 'resourceclaimtemplates', 'ResourceClaimTemplate');
export const DEVICE_CLASSES: ResourceType = { ...v1('resource.k8s.io', 'deviceclasses', 'DeviceClass'), namespaced: false };
