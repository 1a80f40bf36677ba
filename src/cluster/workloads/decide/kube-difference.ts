/** Finds where a live object differs from what was applied. Fields that the server or another client added do not count. Pure. */
import { isTable } from '../../../schema/key-case.ts';

export interface Difference {
  /** Keys of objects, and keys of list elements in brackets: `['spec', 'template', 'containers', '[server]', 'image']`. */
  readonly path: readonly string[];
  readonly wanted: unknown;
  readonly found: unknown;
}

/** The keys by which server-side apply merges lists. Any other list is compared as one value. */
const ELEMENT_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  env: ['name'],
  volumes: ['name'],
  volumeMounts: ['mountPath'],
  ports: ['containerPort', 'port'],
  resourceClaims: ['name'],
  claims: ['name'],
  ownerReferences: ['uid'],
};

/** An empty value counts as absent, since servers drop empty values. */
export function findDifferences(wanted: unknown, found: unknown, path: readonly string[] = []): readonly Difference[] {
  if (isEmpty(wanted)) return isEmpty(found) || isTable(wanted) ? [] : [{ path, wanted, found }];
  if (isTable(wanted)) {
    if (!isTable(found)) return [{ path, wanted, found }];
    return Object.entries(wanted).flatMap(([key, value]) => findDifferences(value, found[key], [...path, key]));
  }
  if (Array.isArray(wanted)) return listDifferences(wanted, found, path);
  return wanted === found ? [] : [{ path, wanted, found }];
}

function listDifferences(wanted: readonly unknown[], found: unknown, path: readonly string[]): readonly Difference[] {
  const live: readonly unknown[] = Array.isArray(found) ? found : [];
  const key = ELEMENT_KEYS[path.at(-1) ?? '']?.find((name) => isTable(wanted[0]) && name in wanted[0]);
  if (key === undefined) {
    const same = live.length === wanted.length && wanted.every((value, index) => findDifferences(value, live[index]).length === 0);
    return same ? [] : [{ path, wanted, found }];
  }
  return wanted.flatMap((element) => {
    const name = keyOf(element, key);
    const inPath = [...path, `[${name}]`];
    const counterpart = live.find((each) => keyOf(each, key) === name);
    return counterpart === undefined
      ? [{ path: inPath, wanted: element, found: undefined }]
      : findDifferences(element, counterpart, inPath);
  });
}

function keyOf(element: unknown, key: string): string {
  return isTable(element) ? String(element[key]) : '';
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isTable(value) && Object.keys(value).length === 0;
}
