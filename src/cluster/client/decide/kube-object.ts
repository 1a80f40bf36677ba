/** Whether something is an object of an API server, and which of two versions is newer. Pure. */
import type { KubeObject } from '../ports.ts';

/** Checks what everybody relies on: the metadata. Not copied, since there are thousands. */
export function isKubeObject(value: unknown): value is KubeObject {
  if (!isRecord(value) || !isRecord(value['metadata'])) return false;
  const { name, namespace, uid, resourceVersion, generation, labels, annotations, ownerReferences } = value['metadata'];
  return (
    typeof name === 'string' &&
    name !== '' &&
    [namespace, uid, resourceVersion].every((text) => text === undefined || typeof text === 'string') &&
    (generation === undefined || typeof generation === 'number') &&
    [labels, annotations].every((texts) => texts === undefined || isRecord(texts)) &&
    (ownerReferences === undefined || Array.isArray(ownerReferences))
  );
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const DIGITS = /^[0-9]{1,30}$/;

/**
 * Below zero: the left one is older. Undefined where the versions are no numbers, which the API permits. Numbers are compared as text, since they
 * may be larger than what is exact here.
 */
export function compareVersions(left: string | undefined, right: string | undefined): number | undefined {
  if (left === undefined || right === undefined || !DIGITS.test(left) || !DIGITS.test(right)) return undefined;
  if (left === right) return 0;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}
