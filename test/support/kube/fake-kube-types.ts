/** The objects that the fake API server stores, and the resource types that it serves. */
import { z } from 'zod';
import {
  CLAIMS,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  DEFINITIONS,
  DEPLOYMENTS,
  DEVICE_CLASSES,
  DISRUPTION_BUDGETS,
  EVENTS,
  LEASES,
  PODS,
  RESOURCE_CLAIM_TEMPLATES,
  SERVICES,
  SLOT_SPECS,
} from '../../../src/cluster/client/decide/resource-path.ts';
import type { ResourceType } from '../../../src/cluster/client/ports.ts';

const Texts = z.record(z.string(), z.string());
const ManagedFields = z.looseObject({
  manager: z.string(),
  operation: z.enum(['Apply', 'Update']),
  subresource: z.string().optional(),
  fieldsV1: z.record(z.string(), z.unknown()),
});

/** An object as a client may send it. */
export const SentObject = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  metadata: z
    .looseObject({
      name: z.string().optional(),
      generateName: z.string().optional(),
      namespace: z.string().optional(),
      resourceVersion: z.string().optional(),
      uid: z.string().optional(),
      labels: Texts.optional(),
      annotations: Texts.optional(),
    })
    .optional(),
});
export type SentObject = z.output<typeof SentObject>;

export const StoredObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    uid: z.string(),
    resourceVersion: z.string(),
    generation: z.number().optional(),
    creationTimestamp: z.string(),
    deletionTimestamp: z.string().optional(),
    labels: Texts.optional(),
    annotations: Texts.optional(),
    finalizers: z.array(z.string()).optional(),
    ownerReferences: z.array(z.looseObject({ uid: z.string(), kind: z.string(), name: z.string() })).optional(),
    managedFields: z.array(ManagedFields).optional(),
  }),
});
export type StoredObject = z.output<typeof StoredObject>;

export interface FakeResource extends ResourceType {
  /** Has a status subresource: writes to the object do not change the status, and writes to `/status` change nothing else. */
  readonly hasStatus: boolean;
}

const withStatus = (type: ResourceType): FakeResource => ({ ...type, hasStatus: true });
const plain = (type: ResourceType): FakeResource => ({ ...type, hasStatus: false });

export const SERVED: readonly FakeResource[] = [
  withStatus(SLOT_SPECS),
  withStatus(DEPLOYMENTS),
  withStatus({ group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', namespaced: true }),
  withStatus(PODS),
  withStatus(SERVICES),
  withStatus(CLAIMS),
  plain(CONFIG_MAPS),
  plain(CONTROLLER_REVISIONS),
  plain({ group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true }),
  plain(EVENTS),
  plain(LEASES),
  withStatus(DISRUPTION_BUDGETS),
];
/** Served only with the option `dra`. */
export const DRA_RESOURCES: readonly FakeResource[] = [plain(RESOURCE_CLAIM_TEMPLATES), plain(DEVICE_CLASSES)];

/** Served only with the option `definitions`. */
export const DEFINED_RESOURCES: readonly FakeResource[] = [
  withStatus(DEFINITIONS),
  withStatus({ ...SLOT_SPECS, version: 'v1beta1' }),
  withStatus({ ...SLOT_SPECS, version: 'v1' }),
];

/** An error response of the API server. */
export interface Refusal {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
}

export type Outcome<T> = { readonly done: true; readonly value: T } | { readonly done: false; readonly refusal: Refusal };

export const done = <T>(value: T): Outcome<T> => ({ done: true, value });
export const refuse = (code: number, reason: string, message: string): Outcome<never> => ({
  done: false,
  refusal: { code, reason, message },
});

/** `deployments.apps`; `pods` for the core group. */
export const resourceName = (type: ResourceType): string => (type.group === '' ? type.plural : `${type.plural}.${type.group}`);

export const apiVersionOf = (type: ResourceType): string => (type.group === '' ? type.version : `${type.group}/${type.version}`);
