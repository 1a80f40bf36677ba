/**
 * Finds outside changes to the objects of a workload. Compares the Deployment's `spec` with the last applied one in an
 * annotation: a newer version of the program renders a different spec, and must not restart running pods. Pure.
 */
import type { KubeManifest, KubeObject, OwnerReference } from '../../client/ports.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { tablesAt, valueAt } from '../../../schema/pod/kube-fields.ts';
import { writerOf, type DeploymentFacts } from './pod-facts.ts';
import { APPLIED_ANNOTATION, podLabels, SERVER_CONTAINER, type KubeWorkload } from './object-names.ts';
import { configMapManifest, serviceManifest } from './render-deployment.ts';
import { verbatim } from './render-pod.ts';
import { truncate } from '../../client/decide/object-fields.ts';
import { appliedSpec, elementKeys, hashIn, hashOf, keyOf, type DeploymentSpec } from './applied-spec.ts';
import { isSameQuantity } from './apply-overlay.ts';
import type { KubeRecord } from './workload-phase.ts';

/** A phrase for each changed field. `owner` undefined: not compared. */
export function findAlteredObjects(wanted: KubeWorkload, record: KubeRecord, owner: OwnerReference | undefined): readonly string[] {
  const { deployment } = record;
  if (deployment.deleting) return [];
  const applied = appliedSpec(deployment);
  const metadata = { labels: podLabels(wanted), ownerReferences: owner === undefined ? [] : [owner] };
  const phraseWithWriter = (each: Difference): string => {
    const writer = writerOf(deployment.writers, each.path);
    return writer === undefined ? phraseOf(each) : `${phraseOf(each)} (by ${textOf(writer)})`;
  };
  return [
    ...findDifferences(metadata, deployment).map(phraseWithWriter),
    ...(applied === undefined
      ? [`annotation "${APPLIED_ANNOTATION}" missing`]
      : findDifferences(applied, deployment.spec).map(phraseWithWriter)),
    ...Object.keys(overriddenEnv(wanted, deployment)).map((name) => `env "${name}" changed`),
    ...(record.isPartial
      ? []
      : [
          ...findAltered('Service', serviceManifest(wanted, owner), record.service),
          ...findAltered('ConfigMap', configMapManifest(wanted, owner), record.configMap),
        ]),
  ];
}

export const isUpToDate = (manifest: KubeManifest, live: KubeObject | undefined): boolean => findAltered('', manifest, live).length === 0;

/** Server-side apply keeps overriding entries of other clients, so `withEnv` must set ours in the same list. */
export function overriddenEnv(wanted: KubeWorkload, deployment: DeploymentFacts): Readonly<Record<string, string>> {
  const server = tablesAt(deployment.spec, 'template', 'spec', 'containers').find(({ name }) => name === SERVER_CONTAINER);
  // The overlay's variables replace those of the provider.
  const replaced = new Set(wanted.cluster.pod?.server?.env?.map(({ name }) => name));
  const overridden = new Set(
    tablesAt(server, 'env').flatMap(({ name, value, valueFrom }) => {
      const own = typeof name === 'string' && Object.hasOwn(wanted.env, name) && !replaced.has(name) ? wanted.env[name] : undefined;
      return own === undefined || ((value ?? '') === verbatim(own) && valueFrom === undefined) ? [] : [name];
    }),
  );
  return Object.fromEntries(Object.entries(wanted.env).filter(([name]) => overridden.has(name)));
}

export function withEnv(spec: DeploymentSpec, env: Readonly<Record<string, string>>): DeploymentSpec {
  const template = spec['template'];
  const podSpec = valueAt(template, 'spec');
  if (Object.keys(env).length === 0 || !isTable(template) || !isTable(podSpec)) return spec;
  const containers = tablesAt(podSpec, 'containers').map((container) => {
    if (container['name'] !== SERVER_CONTAINER) return container;
    const others = tablesAt(container, 'env').filter(({ name }) => typeof name !== 'string' || !Object.hasOwn(env, name));
    return { ...container, env: [...others, ...Object.entries(env).map(([name, value]) => ({ name, value: verbatim(value) }))] };
  });
  return { ...spec, template: { ...template, spec: { ...podSpec, containers } } };
}

function findAltered(kind: string, manifest: KubeManifest, live: KubeObject | undefined): readonly string[] {
  const what = `${kind} "${manifest.metadata.name}"`;
  if (live === undefined || live.metadata.deletionTimestamp !== undefined) return [`${what} deleted`];
  const { data, ...content } = manifest;
  return [
    // Values of a ConfigMap may be secrets, so they are not named.
    ...(isSameValue(data ?? {}, live['data'] ?? {}) ? [] : [`${what}: data changed`]),
    // An additional label makes a selector select fewer pods, but is no difference by the rules of server-side apply.
    ...(isSameValue(valueAt(manifest, 'spec', 'selector'), valueAt(live, 'spec', 'selector')) ? [] : [`${what}: selector changed`]),
    ...findDifferences(content, live).map((each) => `${what}: ${phraseOf(each)}`),
  ];
}

const OMITTED: ReadonlySet<string> = new Set(['spec', 'template', 'metadata', 'containers', `[${SERVER_CONTAINER}]`]);
/** A phrase names a value in full only if it is short. */
const LONGEST_VALUE = 160;

function phraseOf({ path, wanted, found }: Difference): string {
  const parts = path.filter((part) => !OMITTED.has(part));
  const name = (parts.length === 0 ? path : parts).join('.').replaceAll('.[', '[');
  if (['env', 'args', 'command'].some((key) => path.includes(key))) return `${name} changed`;
  if (path.includes('ownerReferences')) return 'owner reference missing';
  if (found === undefined || found === null) return `${name} missing`;
  return isTable(wanted) ? `${name} changed` : `${name} ${textOf(found)} instead of ${textOf(wanted)}`;
}

const textOf = (value: unknown): string => truncate(JSON.stringify(value ?? '') ?? '', LONGEST_VALUE);

interface Difference {
  /** Elements of lists are in brackets: `['spec', 'template', 'containers', '[server]', 'image']`. */
  readonly path: readonly string[];
  readonly wanted: unknown;
  readonly found: unknown;
}

/** Fields that the server or another client added do not count, and an empty value counts as absent. */
export function findDifferences(wanted: unknown, found: unknown, path: readonly string[] = []): readonly Difference[] {
  const hash = hashIn(wanted);
  if (hash !== undefined) return hash === hashOf(found) ? [] : [{ path, wanted, found }];
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
  const keys = elementKeys(path.at(-1) ?? '', wanted);
  if (keys === undefined) {
    const same = live.length === wanted.length && wanted.every((value, index) => findDifferences(value, live[index]).length === 0);
    return same ? [] : [{ path, wanted, found }];
  }
  return wanted.flatMap((element) => {
    const name = keyOf(element, keys);
    const inPath = [...path, `[${name}]`];
    const counterpart = live.find((each) => keyOf(each, keys) === name);
    if (counterpart === undefined) return [{ path: inPath, wanted: element, found: undefined }];
    return findDifferences(element, counterpart, inPath);
  });
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isTable(value) && Object.values(value).every(isEmpty);
}
