/** Finds where a live object differs from what was applied. Fields that the server or another client added do not count. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';
import { isSameQuantity } from './kube-quantity.ts';

export interface Difference {
  /** Keys of objects, and keys of list elements in brackets: `['spec', 'template', 'containers', '[server]', 'image']`. */
  readonly path: readonly string[];
  readonly wanted: unknown;
  readonly found: unknown;
}

/** The keys by which server-side apply merges lists; of several, the first whose keys the elements have. Any other list is compared as one value. */
const ELEMENT_KEYS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  containers: [['name']],
  initContainers: [['name']],
  env: [['name']],
  volumes: [['name']],
  volumeMounts: [['mountPath']],
  ports: [['containerPort'], ['port']],
  resourceClaims: [['name']],
  claims: [['name']],
  imagePullSecrets: [['name']],
  topologySpreadConstraints: [['topologyKey', 'whenUnsatisfiable']],
  ownerReferences: [['uid']],
};

/** An empty value counts as absent, since servers drop empty values. */
export function findDifferences(wanted: unknown, found: unknown, path: readonly string[] = []): readonly Difference[] {
  if (isEmpty(wanted)) return isEmpty(found) || isTable(wanted) ? [] : [{ path, wanted, found }];
  if (isTable(wanted)) {
    if (!isTable(found)) return [{ path, wanted, found }];
    return Object.entries(wanted).flatMap(([key, value]) => findDifferences(value, found[key], [...path, key]));
  }
  if (Array.isArray(wanted)) return listDifferences(wanted, found, path);
  return wanted === found || (isQuantity(path) && isSameQuantity(wanted, found)) ? [] : [{ path, wanted, found }];
}

/** Fields whose text the server rewrites: `1000m` becomes `1`. */
const isQuantity = (path: readonly string[]): boolean =>
  path.at(-2) === 'requests' || path.at(-2) === 'limits' || path.at(-1) === 'sizeLimit' || path.at(-1) === 'divisor';

function listDifferences(wanted: readonly unknown[], found: unknown, path: readonly string[]): readonly Difference[] {
  const live: readonly unknown[] = Array.isArray(found) ? found : [];
  const [first] = wanted;
  const keys = ELEMENT_KEYS[path.at(-1) ?? '']?.find((names) => isTable(first) && names.every((name) => name in first));
  if (keys === undefined) {
    const same = live.length === wanted.length && wanted.every((value, index) => findDifferences(value, live[index]).length === 0);
    return same ? [] : [{ path, wanted, found }];
  }
  return wanted.flatMap((element) => {
    const name = keyOf(element, keys);
    const inPath = [...path, `[${name}]`];
    const counterpart = live.find((each) => keyOf(each, keys) === name);
    return counterpart === undefined
      ? [{ path: inPath, wanted: element, found: undefined }]
      : findDifferences(element, counterpart, inPath);
  });
}

function keyOf(element: unknown, keys: readonly string[]): string {
  return isTable(element) ? keys.map((key) => String(element[key])).join(',') : '';
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isTable(value) && Object.values(value).every(isEmpty);
}
