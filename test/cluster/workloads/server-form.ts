/** Returns objects in the form in which API servers store them: with quantities in canonical form and defaults filled in, without what is empty or not set. */
import { isTable } from '../../../src/schema/words/key-case.ts';

const FACTORS: Readonly<Record<string, bigint>> = {
  '': 1n,
  k: 10n ** 3n,
  M: 10n ** 6n,
  G: 10n ** 9n,
  Ki: 2n ** 10n,
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
};

/** `1000m` becomes `1`, `1024Mi` becomes `1Gi`, and 2 becomes `2`. */
export function canonicalQuantity(quantity: string | number): string {
  const [, whole = '0', fraction = '', unit = ''] = /^([0-9]+)(?:\.([0-9]+))?([A-Za-z]*)$/.exec(String(quantity)) ?? [];
  const digits = BigInt(`${whole}${fraction}`) * 10n ** BigInt(9 - fraction.length);
  const billionths = unit === 'm' ? digits / 1000n : digits * (FACTORS[unit] ?? 1n);
  const isBinary = unit.endsWith('i');
  const [base, units] = isBinary ? [1024n, ['', 'Ki', 'Mi', 'Gi', 'Ti']] : [1000n, ['n', 'u', 'm', '', 'k', 'M', 'G', 'T']];
  const isWhole = billionths % 10n ** 9n === 0n;
  if (isBinary && !isWhole) return canonicalQuantity(`${billionths / 10n ** 6n}m`);
  let left = isBinary ? billionths / 10n ** 9n : billionths;
  let index = 0;
  while (left !== 0n && left % base === 0n && index < units.length - 1) {
    left /= base;
    index += 1;
  }
  return left === 0n ? '0' : `${left}${units[index] ?? ''}`;
}

/** Boolean fields that are not stored if they are false. */
const DROPPED_IF_FALSE: ReadonlySet<string> = new Set(['readOnly']);
const QUANTITIES: ReadonlySet<string> = new Set(['sizeLimit', 'divisor', 'storage']);
const AMOUNTS: ReadonlySet<string> = new Set(['requests', 'limits']);

export function asServerStores(value: unknown, key = '', parent = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => asServerStores(each, '', key));
  if (!isTable(value)) {
    const isQuantity = QUANTITIES.has(key) || AMOUNTS.has(parent);
    return isQuantity && (typeof value === 'string' || typeof value === 'number') ? canonicalQuantity(value) : value;
  }
  const kept = Object.entries(value).flatMap(([name, inner]): readonly (readonly [string, unknown])[] => {
    if (inner === '' || inner === undefined || (inner === false && DROPPED_IF_FALSE.has(name))) return [];
    const stored = asServerStores(inner, name, key);
    const isEmpty =
      (Array.isArray(stored) && stored.length === 0) || (isTable(stored) && Object.keys(stored).length === 0 && !MEANINGFUL.has(name));
    return isEmpty ? [] : [[name, stored]];
  });
  return { ...Object.fromEntries(kept), ...defaultsOf(value, key) };
}

/** Empty objects that say something. */
const MEANINGFUL: ReadonlySet<string> = new Set(['emptyDir', 'securityContext', 'labelSelector']);

function defaultsOf(value: Readonly<Record<string, unknown>>, key: string): object {
  if (key === 'secret' || key === 'configMap' || key === 'projected') return { defaultMode: value['defaultMode'] ?? 0o644 };
  if (key === 'fieldRef') return { apiVersion: 'v1' };
  if (key === 'resourceFieldRef') return { divisor: asServerStores(value['divisor'] ?? '0', 'divisor') };
  if (key === 'serviceAccountToken') return { expirationSeconds: value['expirationSeconds'] ?? 3600 };
  if ('containers' in value)
    return { dnsPolicy: 'ClusterFirst', restartPolicy: 'Always', schedulerName: value['schedulerName'] ?? 'default-scheduler' };
  if ('image' in value) return { terminationMessagePath: '/dev/termination-log' };
  return {};
}
