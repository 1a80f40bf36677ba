/**
 * Merges the overlay of a slot (`spec.pod`) into the parts of its pods. The controller's values win. Values keep the
 * form in which servers store them: no `readOnly: false`. Pure.
 */
import { defined, tableAt, tablesAt } from '../../../schema/pod/kube-fields.ts';
import type { PodOverlay } from '../../../schema/pod/pod-overlay.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { DeviceDemand } from './container-devices.ts';

type Part = Readonly<Record<string, unknown>>;
type Amounts = Readonly<Record<string, string>>;
type ContainerOverlay = NonNullable<PodOverlay['server']>;

/** Ids of users and groups belong together: if one of them is set, the others have no default. */
const IDS = ['runAsUser', 'runAsGroup', 'fsGroup'] as const;

/** `user`: id of the user and its group; "any": the cluster assigns them, as OpenShift does. */
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

/** `confined` is merged with the overlay; `asRoot` applies only if no user is set. */
export function containerSecurity(pod: PodOverlay, overlay: ContainerOverlay | undefined, confined: Part, asRoot: Part): Part {
  const { securityContext = {} } = overlay ?? {};
  const chosen = securityContext.runAsUser ?? pod.securityContext?.runAsUser;
  const base = chosen === undefined ? { ...confined, ...asRoot } : confined;
  const capabilities = { ...tableAt(base, 'capabilities'), ...securityContext.capabilities };
  const { allowPrivilegeEscalation, ...rest } = { ...base, ...securityContext };
  // Kubernetes refuses a privileged container that may not gain rights.
  const mayNotGain = rest.privileged === true && securityContext.allowPrivilegeEscalation === undefined;
  return { ...rest, ...(mayNotGain ? {} : defined({ allowPrivilegeEscalation })), ...filled({ capabilities }) };
}

/** Keys of the pod's spec that the controller does not set itself. `own`: labels of the pods. */
export function podFields(pod: PodOverlay, own: Amounts): Part {
  const { priorityClassName, runtimeClassName, schedulerName, topologySpreadConstraints: constraints } = pod;
  // Without a selector, a constraint would count no pods.
  const topologySpreadConstraints = constraints?.map((each) => ({ labelSelector: { matchLabels: own }, ...each }));
  return defined({ priorityClassName, runtimeClassName, schedulerName, topologySpreadConstraints });
}

export function pullSecrets({ imagePullSecrets = [] }: PodOverlay, ofInstallation: readonly string[]): Part {
  const names = new Set([...ofInstallation, ...imagePullSecrets.map(({ name }) => name)]);
  return filled({ imagePullSecrets: [...names].map((name) => ({ name })) });
}

/** A node must fulfil both: terms are alternatives, so the controller's conditions are added to each. */
export function mergeAffinity({ affinity }: PodOverlay, own: Part): Part {
  if (affinity === undefined) return own;
  const { nodeAffinity: nodes = {} } = affinity;
  const ownNodes = tableAt(own, 'affinity', 'nodeAffinity');
  const [required, preferred] = [
    'requiredDuringSchedulingIgnoredDuringExecution',
    'preferredDuringSchedulingIgnoredDuringExecution',
  ] as const;
  const conditions = tablesAt(ownNodes, required, 'nodeSelectorTerms').flatMap((term) => tablesAt(term, 'matchExpressions'));
  const terms: readonly Part[] = nodes[required]?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => ({ ...term, matchExpressions: [...tablesAt(term, 'matchExpressions'), ...conditions] }));
  const nodeAffinity = {
    ...nodes,
    ...(required in ownNodes ? { [required]: { nodeSelectorTerms } } : {}),
    ...(preferred in ownNodes ? { [preferred]: [...tablesAt(ownNodes, preferred), ...(nodes[preferred] ?? [])] } : {}),
  };
  return { affinity: { ...affinity, ...filled({ nodeAffinity }) } };
}

/** `env`: entries that the overlay may replace. */
export function overlayContainer(container: Part, overlay: ContainerOverlay = {}, demand: DeviceDemand = { kind: 'none' }): Part {
  const named = new Set(overlay.env?.map(({ name }) => name));
  const own = tablesAt(container, 'env').filter(({ name }) => !named.has(String(name)));
  return {
    ...container,
    ...filled({
      env: [...own, ...(overlay.env?.map(asStored) ?? [])],
      // The last one wins, so the variables that a slot sets by name are not changed by a whole Secret.
      envFrom: [...(overlay.envFrom ?? []), ...tablesAt(container, 'envFrom')],
    }),
    resources: mergeResources(tableAt(container, 'resources'), overlay.resources, demand),
    volumeMounts: [...tablesAt(container, 'volumeMounts'), ...(overlay.volumeMounts ?? []).map(asStored)],
  };
}

export const overlayVolumes = ({ volumes = [] }: PodOverlay): readonly Part[] => volumes.map(asStored);

/** The slot's GPUs and memory limit belong to the controller. The memory that it requests is only a default. */
function mergeResources(own: Part, overlay: ContainerOverlay['resources'], demand: DeviceDemand): Part {
  if (overlay === undefined) return own;
  const gpu = demand.kind === 'resource' ? demand.resource : undefined;
  const [limits, asked] = [amounts(overlay.limits, gpu), amounts(overlay.requests, gpu)];
  const ownRequests = tableAt(own, 'requests');
  const isTooMuch = (parseQuantity(ownRequests['memory']) ?? 0) > (parseQuantity(limits['memory']) ?? Number.POSITIVE_INFINITY);
  const requests = { ...ownRequests, ...(isTooMuch ? { memory: limits['memory'] } : {}), ...asked };
  const { requests: _requests, limits: _limits, ...rest } = own;
  return { ...filled({ requests, limits: { ...limits, ...tableAt(own, 'limits') } }), ...rest };
}

function amounts(table: Readonly<Record<string, string | number>> = {}, except: string | undefined): Amounts {
  const entries = Object.entries(table).filter(([name]) => name !== except);
  return Object.fromEntries(entries.map(([name, amount]) => [name, String(amount)]));
}

const filled = (part: Readonly<Record<string, object>>): Part =>
  Object.fromEntries(Object.entries(part).filter(([, value]) => Object.keys(value).length > 0));

const AMOUNT_KEYS: ReadonlySet<string> = new Set(['sizeLimit', 'storage', 'divisor']);

/** Drops `readOnly: false`, as servers do, and writes quantities as texts. */
function asStored(part: Part): Part {
  const entries = Object.entries(part).filter(([key, value]) => key !== 'readOnly' || value !== false);
  const stored = (key: string, value: unknown): unknown =>
    AMOUNT_KEYS.has(key) && typeof value === 'number' ? String(value) : isTable(value) ? asStored(value) : value;
  return Object.fromEntries(entries.map(([key, value]) => [key, stored(key, value)]));
}

/** Divisors for units below one keep decimal fractions exact. */
const PARTS: Readonly<Record<string, number>> = { n: 1e9, u: 1e6, m: 1e3 };
const DECIMAL_UNITS = { '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
const BINARY_UNITS = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
const UNITS: Readonly<Record<string, number>> = { ...DECIMAL_UNITS, ...BINARY_UNITS };
/** Servers round to a billionth. Nobody changes a quantity by less. */
const PRECISION = 1e-9;

export function parseQuantity(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  const match = typeof value === 'string' ? /^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([A-Za-z]*))$/.exec(value) : null;
  if (match === null) return undefined;
  const [, digits = '', exponent = '', unit = ''] = match;
  const number = Number(`${digits}${exponent}`);
  const [divisor, factor] = [PARTS[unit], UNITS[unit]];
  if ((divisor ?? factor) === undefined || Number.isNaN(number)) return undefined;
  return divisor === undefined ? number * (factor ?? 1) : number / divisor;
}

/** Whether both are quantities and mean the same amount: servers return `1` for `1000m`. */
export function isSameQuantity(left: unknown, right: unknown): boolean {
  const [a, b] = [parseQuantity(left), parseQuantity(right)];
  return a !== undefined && b !== undefined && Math.abs(a - b) <= PRECISION * Math.max(Math.abs(a), Math.abs(b));
}
