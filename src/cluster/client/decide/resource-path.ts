/** The resource types that the program reads or writes, their names and paths on the API server. Pure. */
import { fail, ok, type Result } from '../../../schema/words/failure.ts';
import type { ResourceType } from '../ports.ts';
import { SLOT_RESOURCE } from '../../../schema/slot/slot-resource.ts';

export interface ResourceAddress {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
  readonly query?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Lower-case DNS names with dots, as for nearly all objects. A slash, a percent sign or ".." never matches. */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const LONGEST_NAME = 253;

export function badName(name: string): string | undefined {
  if (name.length <= LONGEST_NAME && OBJECT_NAME.test(name)) return undefined;
  return `"${name.slice(0, 80)}" is not the name of an object: use lower-case letters, digits, "-" and "."`;
}

/** `deployments.apps`, as in RBAC and in messages of the server; `pods` for the core group. */
export const resourceName = (type: ResourceType): string => (type.group === '' ? type.plural : `${type.plural}.${type.group}`);

export const apiVersionOf = (type: ResourceType): string => (type.group === '' ? type.version : `${type.group}/${type.version}`);

export const groupPath = (type: ResourceType): string =>
  type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;

export function resourcePath({ type, namespace, name, subresource, query = {} }: ResourceAddress): Result<string> {
  const problem = name === undefined ? undefined : badName(name);
  if (problem !== undefined) return fail('stalled', 'Invalid', problem);
  const parts = [groupPath(type)];
  if (type.namespaced) parts.push('namespaces', encodeURIComponent(namespace));
  parts.push(type.plural);
  if (name !== undefined) parts.push(encodeURIComponent(name));
  if (subresource !== undefined) parts.push(subresource);
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(key, value);
  return ok(search.size === 0 ? parts.join('/') : `${parts.join('/')}?${search.toString()}`);
}

const v1 = (group: string, plural: string, kind: string): ResourceType => ({ group, version: 'v1', plural, kind, namespaced: true });

export const SLOT_SPECS: ResourceType = { ...SLOT_RESOURCE, namespaced: true };
export const DEPLOYMENTS = v1('apps', 'deployments', 'Deployment');
export const CONTROLLER_REVISIONS = v1('apps', 'controllerrevisions', 'ControllerRevision');
export const PODS = v1('', 'pods', 'Pod');
export const SERVICES = v1('', 'services', 'Service');
export const CONFIG_MAPS = v1('', 'configmaps', 'ConfigMap');
export const SECRETS = v1('', 'secrets', 'Secret');
export const CLAIMS = v1('', 'persistentvolumeclaims', 'PersistentVolumeClaim');
export const DISRUPTION_BUDGETS = v1('policy', 'poddisruptionbudgets', 'PodDisruptionBudget');
export const EVENTS = v1('', 'events', 'Event');
export const LEASES = v1('coordination.k8s.io', 'leases', 'Lease');
export const RESOURCE_CLAIM_TEMPLATES = v1('resource.k8s.io', 'resourceclaimtemplates', 'ResourceClaimTemplate');
const clusterWide = (type: ResourceType): ResourceType => ({ ...type, namespaced: false });
export const DEVICE_CLASSES = clusterWide(v1('resource.k8s.io', 'deviceclasses', 'DeviceClass'));
export const DEFINITIONS = clusterWide(v1('apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition'));
