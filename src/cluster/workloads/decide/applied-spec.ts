/**
 * The last applied `spec` of a Deployment, as its annotation records it. All annotations of an object share 256 KiB, so
 * long texts are hashes there: these suffice to find changes, and the texts are in the Deployment itself. Records of
 * earlier versions have every text in full. Pure.
 */
import { createHash } from 'node:crypto';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import { APPLIED_ANNOTATION } from './object-names.ts';
import type { DeploymentFacts } from './pod-facts.ts';

export type DeploymentSpec = Readonly<Record<string, unknown>> & { readonly replicas: number };

/** Texts up to this length are in messages about changes: an image with its digest. */
const LONGEST_TEXT = 256;
/** Used where the record would be too large otherwise: as long as a hash. */
const SHORTEST_HASHED = 24;
/** Leaves a fifth of the room to the annotations of other clients. */
const LARGEST_RECORD = 204_800;
/** No key of a label, a resource or a field of Kubernetes has this character. */
const HASH_KEY = '#';

/** Lists that server-side apply merges by a key. Others are compared as one value. */
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
const KEY_FIELDS: ReadonlySet<string> = new Set(Object.values(ELEMENT_KEYS).flat(2));

/** The keys of the elements of the list `name`; undefined if it is compared as one value. */
export function elementKeys(name: string, list: readonly unknown[]): readonly string[] | undefined {
  const [first] = list;
  return ELEMENT_KEYS[name]?.find((names) => isTable(first) && names.every((key) => key in first));
}

export const keyOf = (element: unknown, keys: readonly string[]): string =>
  isTable(element) ? keys.map((key) => String(element[key])).join(',') : '';

/** Undefined if somebody removed or damaged the annotation. */
export function appliedSpec({ annotations }: DeploymentFacts): DeploymentSpec | undefined {
  const spec = parseJson(annotations[APPLIED_ANNOTATION] ?? '');
  return isDeploymentSpec(spec) ? spec : undefined;
}

const isDeploymentSpec = (value: unknown): value is DeploymentSpec =>
  isTable(value) && typeof value['replicas'] === 'number' && isTable(value['template']);

/** The record of a spec. That of a record is the record itself, and those of a spec in both forms are the same. */
export function recordApplied(spec: DeploymentSpec): DeploymentSpec {
  const recorded = condense(spec, LONGEST_TEXT);
  const isTooLarge = Buffer.byteLength(JSON.stringify(recorded)) > LARGEST_RECORD;
  return { ...spec, ...tableOf(isTooLarge ? condense(spec, SHORTEST_HASHED) : recorded) };
}

/**
 * The spec that was applied, with the texts of those in `sources` that still have them: the Deployment, or what is
 * rendered now. Undefined if none has.
 */
export function restoreApplied(applied: DeploymentSpec | undefined, sources: readonly unknown[]): DeploymentSpec | undefined {
  const found = restore(applied, sources);
  return isDeploymentSpec(found) && !JSON.stringify(found).includes(`{"${HASH_KEY}":`) ? found : undefined;
}

/** The hash that stands for a text in a record; undefined for every other value. */
export function hashIn(value: unknown): string | undefined {
  const hash = isTable(value) ? value[HASH_KEY] : undefined;
  return typeof hash === 'string' ? hash : undefined;
}

export const hashOf = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(value) ?? '')
    .digest('hex')
    .slice(0, 16);

const tableOf = (value: unknown): Readonly<Record<string, unknown>> => (isTable(value) ? value : {});

function condense(value: unknown, longest: number): unknown {
  const isText = typeof value === 'string' || (Array.isArray(value) && value.every((each) => typeof each === 'string'));
  if (isText) return JSON.stringify(value).length > longest ? { [HASH_KEY]: hashOf(value) } : value;
  if (Array.isArray(value)) return value.map((each) => condense(each, longest));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, KEY_FIELDS.has(key) && typeof inner === 'string' ? inner : condense(inner, longest)]),
  );
}

/** A hash without a source stays. */
function restore(applied: unknown, sources: readonly unknown[], name = ''): unknown {
  const hash = hashIn(applied);
  if (hash !== undefined) return sources.find((source) => hashOf(source) === hash) ?? applied;
  if (Array.isArray(applied)) {
    const keys = elementKeys(name, applied);
    return applied.map((element, index) => {
      const counterparts = sources
        .filter(Array.isArray)
        .map((list): unknown => (keys === undefined ? list[index] : list.find((each) => keyOf(each, keys) === keyOf(element, keys))));
      return restore(element, counterparts);
    });
  }
  if (!isTable(applied)) return applied;
  return Object.fromEntries(
    Object.entries(applied).map(([key, inner]) => [
      key,
      restore(
        inner,
        sources.map((source) => tableOf(source)[key]),
        key,
      ),
    ]),
  );
}
