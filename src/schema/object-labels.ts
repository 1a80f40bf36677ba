/** Labels and annotations on everything that the service makes, the same on containers and in a cluster. */
export const LABEL_PREFIX = 'inference.svc.dev';

export const LABELS = {
  /** The slot's name. */
  slot: `${LABEL_PREFIX}/slot`,
  /** The workload's revision. */
  revision: `${LABEL_PREFIX}/revision`,
  /** The generation of the slot it was made for. */
  generation: `${LABEL_PREFIX}/generation`,
  /** `gateway` on the leases of the replicas. */
  component: `${LABEL_PREFIX}/component`,
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

/** Value of `app.kubernetes.io/managed-by` on all objects of a cluster that the service makes. */
export const MANAGER = 'svc';
/** Who owns the fields that the controller applies. */
export const FIELD_MANAGER = 'svc-controller';
