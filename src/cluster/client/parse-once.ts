/** Remembers what was parsed from an object of the cluster, as long as the object exists. Objects in a copy never change. */
import type { KubeObject } from './ports.ts';

/** Calls `parse` once for each object. */
export function parseOnce<Parsed>(parse: (object: KubeObject) => Parsed): (object: KubeObject) => Parsed {
  const known = new WeakMap<KubeObject, { readonly parsed: Parsed }>();
  return (object) => {
    const entry = known.get(object) ?? { parsed: parse(object) };
    known.set(object, entry);
    return entry.parsed;
  };
}
