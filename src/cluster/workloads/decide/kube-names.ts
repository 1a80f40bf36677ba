/** What the objects of a workload are called, and the names inside its pods. Pure. */
import type { Workload } from '../../../reconciler/ports.ts';
import { LABEL_PREFIX } from '../../../schema/object-labels.ts';

/** The container that answers. */
export const SERVER_CONTAINER = 'server';
/** The init container that fetches and verifies the model. */
export const MODEL_CONTAINER = 'model';
/** Name of the port, in pods and in the Service. */
export const PORT_NAME = 'http';
/** Where pods see the model store. */
export const MODELS_TARGET = '/models';

/** On the Deployment: the `spec` that was applied last, as JSON. What differs from it was altered from outside, whatever a newer program would render. */
export const APPLIED_ANNOTATION = `${LABEL_PREFIX}/applied`;
/** On pods: the name of their Deployment. Keeps two workloads of one slot apart even when their revision is the same. */
export const INSTANCE_LABEL = 'app.kubernetes.io/instance';
/** On nodes: `true` where a backend runs well. */
export const backendLabel = (backend: string): string => `${LABEL_PREFIX}/backend-${backend}`;

export const serviceName = (slot: string): string => `svc-slot-${slot}`;
export const claimName = (slot: string): string => `svc-slot-${slot}`;
/** Of the ConfigMap with the environment, and of the template of the claim for GPUs. A name of its own for each revision: both are never altered. */
export const revisionedName = ({ name, revision }: Pick<Workload, 'name' | 'revision'>): string => `${name}-${revision}`;
