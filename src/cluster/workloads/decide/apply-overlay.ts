/**
 * Merges the overlay of a slot (`spec.pod`) into the parts of its pods. What the controller renders wins wherever the schema of the overlay cannot exclude a
 * conflict. Pure. Values keep the form in which an API server stores them: it drops `readOnly: false`, for example.
 */
import type { PodOverlay } from '../../../schema/pod/pod-overlay.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { DeviceDemand } from './container-devices.ts';

type Part = Readonly<Record<string, unknown>>;
type Amounts = Readonly<Record<string, string>>;
type ContainerOverlay = NonNullable<PodOverlay['server']>;

/** Ids of users and groups belong together: if one of them is set, the others have no default. */
const IDS = ['runAsUser', 'runAsGroup', 'fsGroup'] as const;

/** `user`: id of the user and of its group; "any" leaves them to the cluster, which assigns those of the namespace's range on OpenShift. */
export function podSecurity({ securityContext = {} }: PodOverlay, user: number | 'any'): Part {
  const leaves = user === 'any' || IDS.some((id) => securityContext[id] !== undefined);
  return {
    runAsNonRoot: true,
    ...(leaves ? {} : { runAsUser: user, runAsGroup: user, fsGroup: user }),
    fsGroupChangePolicy: 'OnRootMismatch',
    seccompProfile: { type: 'RuntimeDefault' },
    ...securityContext,
  };
}

/** `confined` is merged with the overlay; `asRoot` applies only if nobody has chosen a user. */
export function containerSecurity(pod: PodOverlay, overlay: ContainerOverlay | undefined, confined: Part, asRoot: Part): Part {
  const { securityContext = {} } = overlay ?? {};
  const chosen = securityContext.runAsUser ?? pod.securityContext?.runAsUser;
  const base = chosen === undefined ? { ...confined, ...asRoot } : confined;
  const capabilities = { ...tableOf(base['capabilities']), ...securityContext.capabilities };
  const { allowPrivilegeEscalation, ...rest } = { ...base, ...securityContext };
  // Kubernetes refuses a privileged container that may not gain rights.
  const mayNotGain = rest.privileged === true && securityContext.allowPrivilegeEscalation === undefined;
  return {
    ...rest,
    ...(allowPrivilegeEscalation === undefined || mayNotGain ? {} : { allowPrivilegeEscalation }),
    ...(Object.keys(capabilities).length === 0 ? {} : { capabilities }),
  };
}

/** Keys of the pod's spec that the controller does not set itself. `own`: labels of the pods. */
export function podFields(pod: PodOverlay, own: Amounts): Part {
  const { priorityClassName, runtimeClassName, schedulerName, topologySpreadConstraints: constraints } = pod;
  return {
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...(schedulerName === undefined ? {} : { schedulerName }),
    // Without a selector, a constraint would count no pods.
    ...(constraints === undefined
      ? {}
      : { topologySpreadConstraints: constraints.map((each) => ({ labelSelector: { matchLabels: own }, ...each })) }),
  };
}

/** Each name once, those of the installation first. */
export function pullSecrets({ imagePullSecrets = [] }: PodOverlay, ofInstallation: readonly string[]): Part {
  const names = new Set([...ofInstallation, ...imagePullSecrets.map(({ name }) => name)]);
  return names.size === 0 ? {} : { imagePullSecrets: [...names].map((name) => ({ name })) };
}

/** A node must fulfil both: terms are alternatives, so the controller's conditions are added to each. */
export function mergeAffinity({ affinity }: PodOverlay, own: Part): Part {
  const { affinity: ownAffinity } = own;
  if (affinity === undefined) return own;
  const { nodeAffinity: ownNodes } = tableOf(ownAffinity);
  const nodes = { ...affinity.nodeAffinity };
  const { requiredDuringSchedulingIgnoredDuringExecution: required, preferredDuringSchedulingIgnoredDuringExecution: preferred } =
    tableOf(ownNodes);
  const merged = {
    ...nodes,
    ...(required === undefined
      ? {}
      : {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: mergeTerms(
              nodes.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}],
              listOf(tableOf(required)['nodeSelectorTerms']),
            ),
          },
        }),
    ...(preferred === undefined
      ? {}
      : {
          preferredDuringSchedulingIgnoredDuringExecution: [
            ...listOf(preferred),
            ...(nodes.preferredDuringSchedulingIgnoredDuringExecution ?? []),
          ],
        }),
  };
  return { affinity: { ...affinity, ...(Object.keys(merged).length === 0 ? {} : { nodeAffinity: merged }) } };
}

function mergeTerms(terms: readonly Part[], own: readonly Part[]): readonly Part[] {
  const conditions = own.flatMap(({ matchExpressions }) => listOf(matchExpressions));
  return terms.map((term) => ({ ...term, matchExpressions: [...listOf(term['matchExpressions']), ...conditions] }));
}

/** Adds the overlay's environment, mounts and resources. `env`: entries that the overlay may replace. */
export function overlayContainer(container: Part, overlay: ContainerOverlay = {}, demand: DeviceDemand = { kind: 'none' }): Part {
  const named = new Set(overlay.env?.map(({ name }) => name));
  const env = [...listOf(container['env']).filter(({ name }) => !named.has(String(name))), ...(overlay.env?.map(asStored) ?? [])];
  // The last one wins, so what a slot sets by name is not changed by a whole Secret.
  const envFrom = [...(overlay.envFrom ?? []), ...listOf(container['envFrom'])];
  return {
    ...container,
    ...(env.length === 0 ? {} : { env }),
    ...(envFrom.length === 0 ? {} : { envFrom }),
    resources: mergeResources(tableOf(container['resources']), overlay.resources, demand),
    volumeMounts: [...listOf(container['volumeMounts']), ...(overlay.volumeMounts ?? []).map(asStored)],
  };
}

/** The volumes of the overlay as API servers store them. */
export const overlayVolumes = ({ volumes = [] }: PodOverlay): readonly Part[] => volumes.map(asStored);

/** GPUs and the limit of memory that the slot declares belong to the controller. The memory that it requests is only a default. */
function mergeResources(own: Part, overlay: ContainerOverlay['resources'], demand: DeviceDemand): Part {
  if (overlay === undefined) return own;
  const gpu = demand.kind === 'resource' ? demand.resource : undefined;
  const [limits, asked] = [amounts(overlay.limits, gpu), amounts(overlay.requests, gpu)];
  const ownRequests = tableOf(own['requests']);
  const isTooMuch = (parseQuantity(ownRequests['memory']) ?? 0) > (parseQuantity(limits['memory']) ?? Number.POSITIVE_INFINITY);
  const requests = { ...ownRequests, ...(isTooMuch ? { memory: limits['memory'] } : {}), ...asked };
  const allLimits = { ...limits, ...tableOf(own['limits']) };
  const { requests: _requests, limits: _limits, ...rest } = own;
  return {
    ...(Object.keys(requests).length === 0 ? {} : { requests }),
    ...(Object.keys(allLimits).length === 0 ? {} : { limits: allLimits }),
    ...rest,
  };
}

function amounts(table: Readonly<Record<string, string | number>> | undefined, except: string | undefined): Amounts {
  const entries = Object.entries(table ?? {}).filter(([name]) => name !== except);
  return Object.fromEntries(entries.map(([name, amount]) => [name, String(amount)]));
}

const AMOUNT_KEYS: ReadonlySet<string> = new Set(['sizeLimit', 'storage', 'divisor']);

/** Without `readOnly: false`, which servers drop, and with quantities as texts. */
function asStored(part: Part): Part {
  return Object.fromEntries(
    Object.entries(part).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
      if (key === 'readOnly' && value === false) return [];
      if (AMOUNT_KEYS.has(key) && typeof value === 'number') return [[key, String(value)]];
      return [[key, isTable(value) ? asStored(value) : value]];
    }),
  );
}

const tableOf = (value: unknown): Part => (isTable(value) ? value : {});
const listOf = (value: unknown): readonly Part[] => (Array.isArray(value) ? value.filter(isTable) : []);

/** Compares quantities such as `1000m` and `1`: API servers return another text than they were sent. Pure. */

/** Divisors for units below one, which keep decimal fractions exact. */
const PARTS: Readonly<Record<string, number>> = { n: 1e9, u: 1e6, m: 1e3 };
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
/** Servers round to a billionth. Nobody changes a quantity by less. */
const PRECISION = 1e-9;

/** Undefined if the value is no quantity. */
export function parseQuantity(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  const match = typeof value === 'string' ? /^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([A-Za-z]*))$/.exec(value) : null;
  if (match === null) return undefined;
  const [, digits = '', exponent = '', unit = ''] = match;
  const number = Number(`${digits}${exponent}`);
  const divisor = PARTS[unit];
  const factor = divisor === undefined ? UNITS[unit] : 1 / divisor;
  if (factor === undefined || Number.isNaN(number)) return undefined;
  return divisor === undefined ? number * factor : number / divisor;
}

/** Whether both are quantities and mean the same amount. */
export function isSameQuantity(left: unknown, right: unknown): boolean {
  const [a, b] = [parseQuantity(left), parseQuantity(right)];
  return a !== undefined && b !== undefined && Math.abs(a - b) <= PRECISION * Math.max(Math.abs(a), Math.abs(b));
}
