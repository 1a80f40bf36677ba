/** Reads rendered objects. */
import { isTable } from '../../src/schema/words/key-case.ts';

type Json = Readonly<Record<string, unknown>>;

/** Returns what is at a path of keys and indices, or undefined. */
export const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, part) => (Array.isArray(inner) ? inner[Number(part)] : isTable(inner) ? inner[part] : undefined), value);
export const listAt = (value: unknown, ...path: readonly (string | number)[]): readonly unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};
export const ofKind = (objects: readonly Json[], kind: string): readonly Json[] => objects.filter((object) => object['kind'] === kind);
export const gatewayOf = (objects: readonly Json[]): unknown =>
  ofKind(objects, 'Deployment').find((object) => at(object, 'metadata', 'labels', 'app.kubernetes.io/component') === 'gateway');
