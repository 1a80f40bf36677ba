/**
 * Finds outside changes to the objects of a workload, and what to apply to revert them. The Deployment's `spec` is compared with the last applied one, which
 * is stored in an annotation: a newer version of the program or other settings render a different spec, and must not restart running pods.
 * Pure.
 */
import type { KubeManifest, KubeObject, OwnerReference } from '../../client/ports.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { findDifferences, type Difference } from './kube-difference.ts';
import type { DeploymentFacts } from './pod-facts.ts';
import { APPLIED_ANNOTATION, podLabels, SERVER_CONTAINER } from './object-names.ts';
import { writerOf } from './kube-writers.ts';
import { configMapManifest, serviceManifest, type DeploymentSpec } from './render-objects.ts';
import type { KubeRecord } from './kube-observe.ts';
import { verbatim } from './render-pod.ts';
import type { KubeWorkload } from './kube-workload.ts';
import { truncate } from '../../client/decide/kube-values.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** Returns the last applied `spec`; undefined if somebody removed or damaged the annotation. */
export function appliedSpec({ annotations }: DeploymentFacts): DeploymentSpec | undefined {
  const spec = parseJson(annotations[APPLIED_ANNOTATION] ?? '');
  return isDeploymentSpec(spec) ? spec : undefined;
}

function isDeploymentSpec(value: unknown): value is DeploymentSpec {
  return isTable(value) && typeof value['replicas'] === 'number' && isTable(value['template']);
}

/** Returns a phrase for each changed field, with the program that changed it where the Deployment names it. `owner` undefined: not known, and not compared. */
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

/** Whether writing the manifest would change nothing. */
export const isUpToDate = (manifest: KubeManifest, live: KubeObject | undefined): boolean => findAltered('', manifest, live).length === 0;

/**
 * Returns our variables that entries of other clients in the server container's own list override. Server-side apply keeps such entries, so `withEnv` must set
 * ours in the same list.
 */
export function overriddenEnv(wanted: KubeWorkload, deployment: DeploymentFacts): Readonly<Record<string, string>> {
  const containers = tables(valueAt(deployment.spec, 'template', 'spec', 'containers'));
  const server = containers.find(({ name }) => name === SERVER_CONTAINER);
  // What the overlay sets by name replaces what the provider sets.
  const replaced = new Set(wanted.cluster.pod?.server?.env?.map(({ name }) => name));
  const overridden = new Set(
    tables(server?.['env']).flatMap(({ name, value, valueFrom }) => {
      const own = typeof name === 'string' && Object.hasOwn(wanted.env, name) && !replaced.has(name) ? wanted.env[name] : undefined;
      return own === undefined || ((value ?? '') === verbatim(own) && valueFrom === undefined) ? [] : [name];
    }),
  );
  return Object.fromEntries(Object.entries(wanted.env).filter(([name]) => overridden.has(name)));
}

/** Returns `spec` with these variables set in the server container's own list. */
export function withEnv(spec: DeploymentSpec, env: Readonly<Record<string, string>>): DeploymentSpec {
  const template = spec['template'];
  const podSpec = valueAt(template, 'spec');
  if (Object.keys(env).length === 0 || !isTable(template) || !isTable(podSpec)) return spec;
  const containers = tables(podSpec['containers']).map((container) => {
    if (container['name'] !== SERVER_CONTAINER) return container;
    const others = tables(container['env']).filter(({ name }) => typeof name !== 'string' || !Object.hasOwn(env, name));
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
    // An additional label in a selector makes it select fewer pods, but is no difference by the rules of server-side apply.
    ...(isSameValue(valueAt(manifest, 'spec', 'selector'), valueAt(live, 'spec', 'selector')) ? [] : [`${what}: selector changed`]),
    ...findDifferences(content, live).map((each) => `${what}: ${phraseOf(each)}`),
  ];
}

/** Parts of a path that would only lengthen the phrase. */
const OMITTED: ReadonlySet<string> = new Set(['spec', 'template', 'metadata', 'containers', `[${SERVER_CONTAINER}]`]);
/** A phrase names a value in full only if it is short. */
const LONGEST_VALUE = 160;

function phraseOf({ path, wanted, found }: Difference): string {
  const parts = path.filter((part) => !OMITTED.has(part));
  const name = (parts.length === 0 ? path : parts).join('.').replaceAll('.[', '[');
  if (path.includes('env')) return `${name} changed`;
  if (path.includes('ownerReferences')) return 'owner reference missing';
  if (found === undefined || found === null) return `${name} missing`;
  return isTable(wanted) ? `${name} changed` : `${name} ${textOf(found)} instead of ${textOf(wanted)}`;
}

const textOf = (value: unknown): string => truncate(JSON.stringify(value ?? '') ?? '', LONGEST_VALUE);

function valueAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isTable(inner) ? inner[key] : undefined), value);
}

function tables(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isTable) : [];
}
