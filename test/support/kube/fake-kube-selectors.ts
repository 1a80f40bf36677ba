/** Label and field selectors of a query string. Pure. */
import { isFields } from './fake-kube-fields.ts';
import type { StoredObject } from './fake-kube-types.ts';

export type Selector = (object: StoredObject) => boolean;

const PART = /\s*([^,()]+(?:\([^)]*\))?)\s*(?:,|$)/g;
const SET = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/;

/** Returns undefined if the selector is not valid. */
export function labelSelector(text: string): Selector | undefined {
  const tests = [...text.matchAll(PART)].map(([, part]) => labelTest((part ?? '').trim()));
  const known = tests.filter((test) => test !== undefined);
  return known.length === tests.length ? (object) => known.every((test) => test(object.metadata.labels ?? {})) : undefined;
}

function labelTest(part: string): ((labels: Readonly<Record<string, string>>) => boolean) | undefined {
  const set = SET.exec(part);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const values = list.split(',').map((value) => value.trim());
    return (labels) => {
      const value = labels[key];
      return operator === 'in' ? value !== undefined && values.includes(value) : value === undefined || !values.includes(value);
    };
  }
  const pair = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(part);
  if (pair !== null) {
    const [, key = '', operator, value] = pair;
    return (labels) => (operator === '!=' ? labels[key] !== value : labels[key] === value);
  }
  if (/^![^=!\s]+$/.test(part)) return (labels) => !(part.slice(1) in labels);
  return /^[^=!\s]+$/.test(part) ? (labels) => part in labels : undefined;
}

/** `involvedObject.name=x,type!=Normal`. */
export function fieldSelector(text: string): Selector | undefined {
  const pairs = text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => /^([A-Za-z.]+)(==|=|!=)(.*)$/.exec(part));
  if (pairs.includes(null)) return undefined;
  return (object) =>
    pairs.every((pair) => {
      const [, path = '', operator, value = ''] = pair ?? [];
      const at = path.split('.').reduce<unknown>((part, key) => (isFields(part) ? part[key] : undefined), object);
      const found = typeof at === 'string' ? at : '';
      return operator === '!=' ? found !== value : found === value;
    });
}
