/** Recognises objects, compares their versions, and writes times, texts and sizes as an API server does. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';
import type { KubeObject } from '../ports.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

/** Checks only the metadata, on which all callers rely. Does not copy the object, since there are thousands. */
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

/** Compares texts, since versions may exceed safe integers. Undefined if one is no number, which the API permits. */
export function compareVersions(left: string | undefined, right: string | undefined): number | undefined {
  if (left === undefined || right === undefined || !DIGITS.test(left) || !DIGITS.test(right)) return undefined;
  if (left === right) return 0;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}

/** RFC 3339 in UTC, in whole seconds. */
export const kubeTime = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** The most that a condition's message holds of a text that the cluster wrote. */
const LONGEST_CAUSE = 400;
export const truncate = (text: string, most = LONGEST_CAUSE): string => shorten(text, most);

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P', 'E'] as const;

/** The canonical quantity (`9Gi`, `1500M`, `1234567`), to which servers normalize: any other would look like drift. */
export function quantityOfBytes(bytes: number): string {
  const whole = Math.ceil(bytes);
  return whole % 1024 === 0 ? withSuffix(whole, 1024, BINARY) : withSuffix(whole, 1000, DECIMAL);
}

function withSuffix(value: number, base: number, suffixes: readonly string[]): string {
  let left = value;
  let index = 0;
  while (left !== 0 && left % base === 0 && index < suffixes.length - 1) {
    left /= base;
    index += 1;
  }
  return `${left}${suffixes[index] ?? ''}`;
}
