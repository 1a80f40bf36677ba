/** Recognises objects of an API server and compares their resource versions. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';
import type { KubeObject } from '../ports.ts';

/** Checks only the metadata, on which all callers rely. The object is not copied, since there are thousands. */
export function isKubeObject(value: unknown): value is KubeObject {
  if (!isTable(value) || !isTable(value['metadata'])) return false;
  const { name, namespace, uid, resourceVersion, generation, labels, annotations, ownerReferences } = value['metadata'];
  return (
    typeof name === 'string' &&
    name !== '' &&
    [namespace, uid, resourceVersion].every((text) => text === undefined || typeof text === 'string') &&
    (generation === undefined || typeof generation === 'number') &&
    [labels, annotations].every((texts) => texts === undefined || isTable(texts)) &&
    (ownerReferences === undefined || Array.isArray(ownerReferences))
  );
}

const DIGITS = /^[0-9]{1,30}$/;

/**
 * Returns a number below zero if the left version is older, or undefined if the versions are not numbers, which the API permits. Versions are
 * compared as text, since they may exceed the safe integers.
 */
export function compareVersions(left: string | undefined, right: string | undefined): number | undefined {
  if (left === undefined || right === undefined || !DIGITS.test(left) || !DIGITS.test(right)) return undefined;
  if (left === right) return 0;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}
