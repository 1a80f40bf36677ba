/** Keys of pod templates that users look for in the overlay of a slot and do not find there, with what to do instead. Pure. */

const HOST = 'the pods of a slot have a network and processes of their own, which the controller relies on';
const PROBE =
  'the controller probes the model server as its provider requires; "{lifecycle}.{startTimeout}" is how long it may take to start';

const OF_PODS: Readonly<Record<string, string>> = {
  metadata: 'write "{labels}" and "{annotations}" directly under "pod"',
  spec: 'write its keys directly under "pod"',
  containers: 'the controller decides which containers a pod has; "pod.server" and "pod.model" change theirs',
  initContainers: 'the controller decides which containers a pod has; "pod.server" and "pod.model" change theirs',
  ephemeralContainers: 'the controller decides which containers a pod has',
  nodeSelector: 'write it at the top of the slot, not under "pod"',
  tolerations: 'write it at the top of the slot, not under "pod"',
  serviceAccountName: 'write it at the top of the slot, not under "pod"',
  serviceAccount: 'write "{serviceAccountName}" at the top of the slot',
  automountServiceAccountToken: 'pods get no token; mount one as a projected volume with "{serviceAccountToken}"',
  nodeName: 'use "{nodeSelector}" at the top of the slot, so that the scheduler can decide',
  resources: 'write it under "pod.server" or "pod.model"',
  resourceClaims: 'use "resources.gpus" of the slot, for which the controller makes claims',
  env: 'write it under "pod.server" or "pod.model"',
  envFrom: 'write it under "pod.server" or "pod.model"',
  volumeMounts: 'write it under "pod.server" or "pod.model"',
  terminationGracePeriodSeconds: 'it follows from "{lifecycle}.{drainTimeout}"',
  restartPolicy: 'the pods of a Deployment are always restarted',
  enableServiceLinks: 'it is off, since variables of Services could change what model servers do',
  hostNetwork: HOST,
  hostPID: HOST,
  hostIPC: HOST,
  hostUsers: HOST,
  shareProcessNamespace: HOST,
};

const OF_CONTAINERS: Readonly<Record<string, string>> = {
  name: 'the names of containers are fixed',
  image: 'images are in the toolbox manifest, for each provider and backend',
  imagePullPolicy: 'images are pinned by digest, so they are pulled once',
  command: 'the provider decides how the server is started; "model.args" appends arguments',
  args: 'the provider decides how the server is started; "model.args" appends arguments',
  workingDir: 'the provider decides how the server is started',
  ports: 'the provider decides the port, and the gateway finds it',
  lifecycle: 'the controller needs the hooks to let requests end before a pod does',
  startupProbe: PROBE,
  readinessProbe: PROBE,
  livenessProbe: PROBE,
  terminationMessagePath: 'the controller reads from it why a server ended',
  terminationMessagePolicy: 'the controller reads from it why a server ended',
};

/** Returns why this unknown key at a path of a slot is not available; undefined if it is not a key of pod templates. Keys in the text are as `writeKeys` expects them. */
export function whyOwned([first, container, ...rest]: readonly (string | number)[], key: string): string | undefined {
  if (first !== 'pod' || rest.length > 0) return undefined;
  const table = container === undefined ? OF_PODS : container === 'server' || container === 'model' ? OF_CONTAINERS : {};
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
