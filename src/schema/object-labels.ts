/** Labels and annotations on every object that the service creates, the same for containers and in a cluster. */
export const LABEL_PREFIX = 'inference.svc.dev';

export const LABELS = {
  /** Name of the slot. */
  slot: `${LABEL_PREFIX}/slot`,
  /** Revision of the workload. */
  revision: `${LABEL_PREFIX}/revision`,
  /** Generation of the slot that the workload was created for. */
  generation: `${LABEL_PREFIX}/generation`,
  /** `gateway` on the Leases of the replicas. */
  component: `${LABEL_PREFIX}/component`,
  /** On what the cluster remembers of a model: a hash of its name. On accepted licences: `license`. */
  model: `${LABEL_PREFIX}/model`,
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

/** Value of `app.kubernetes.io/managed-by` on every Kubernetes object that the service creates. */
export const MANAGER = 'svc';
/** Field manager of everything that the controller applies. */
export const FIELD_MANAGER = 'svc-controller';
/** The Lease of the leader. svcctl finds it by this name. */
export const CONTROLLER_LEASE = 'svc-controller';
