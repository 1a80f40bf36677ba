/**
 * What was altered from outside in a workload's objects, and what to apply so that it is mended. The Deployment's `spec` is compared with what was applied
 * to it last, which it carries with it: a newer program, other settings or edited times render something else, and nothing that runs is restarted for that.
 * Pure.
 */
import type { KubeManifest, KubeObject, OwnerReference } from '../../client/ports.ts';
import { isTable } from '../../../schema/key-case.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import { findDifferences } from './kube-difference.ts';
import type { Difference } from './kube-difference.ts';
import type { DeploymentFacts } from './kube-facts.ts';
import { APPLIED_ANNOTATION, SERVER_CONTAINER } from './kube-names.ts';
import { configMapManifest, serviceManifest } from './kube-objects.ts';
import type { DeploymentSpec } from './kube-objects.ts';
import type { KubeRecord } from './kube-observe.ts';
import { podLabels, verbatim } from './kube-pod.ts';
import type { KubeWorkload } from './kube-pod.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** The `spec` that was applied last; undefined when somebody took the note away. */
export function appliedSpec(deployment: DeploymentFacts): DeploymentSpec | undefined {
  const spec = parseJson(deployment.annotations[APPLIED_ANNOTATION] ?? '');
  return isDeploymentSpec(spec) ? spec : undefined;
}

function isDeploymentSpec(value: unknown): value is DeploymentSpec {
  return isTable(value) && typeof value['replicas'] === 'number' && isTable(value['template']);
}

/** A phrase for each altered field; empty: nothing was. `owner` undefined: not known, and not compared. */
export function findAlteredObjects(
  wanted: KubeWorkload,
  record: KubeRecord,
  applied: DeploymentSpec | undefined,
  owner: OwnerReference | undefined,
): readonly string[] {
  const { deployment } = record;
  if (deployment.deleting) return [];
  const owners = owner === undefined ? [] : [owner];
  const metadata = { labels: podLabels(wanted), ownerReferences: owners };
  return [
    ...findDifferences(metadata, deployment).map(phraseOf),
    ...(applied === undefined ? [`annotation "${APPLIED_ANNOTATION}" missing`] : findDifferences(applied, deployment.spec).map(phraseOf)),
    ...Object.keys(overriddenEnv(wanted, deployment)).map((name) => `env "${name}" with another value`),
    ...alteredObject(serviceManifest(wanted, owner), record.service),
    ...alteredObject(configMapManifest(wanted, owner), record.configMap),
  ];
}

/** Whether what is there is what would be written: then nothing need be. */
export const isAsWanted = (manifest: KubeManifest, live: KubeObject | undefined): boolean => alteredObject(manifest, live).length === 0;

/**
 * Variables of ours that an entry of the server's own list overrides. Server-side apply leaves entries of others alone, so that ours must be set over them.
 */
export function overriddenEnv(wanted: KubeWorkload, deployment: DeploymentFacts): Readonly<Record<string, string>> {
  const containers = tables(tables([tables([deployment.spec['template']])[0]?.['spec']])[0]?.['containers']);
  const server = containers.find((each) => each['name'] === SERVER_CONTAINER);
  const names = tables(server?.['env']).flatMap((entry) => {
    const { name, value } = entry;
    if (typeof name !== 'string' || !Object.hasOwn(wanted.env, name)) return [];
    return (value ?? '') === verbatim(wanted.env[name] ?? '') && entry['valueFrom'] === undefined ? [] : [name];
  });
  return Object.fromEntries(names.map((name) => [name, wanted.env[name] ?? '']));
}

/** `spec` with these variables set in the server's own list. */
export function withEnv(spec: DeploymentSpec, env: Readonly<Record<string, string>>): DeploymentSpec {
  const template = spec['template'];
  const podSpec = isTable(template) ? template['spec'] : undefined;
  if (Object.keys(env).length === 0 || !isTable(template) || !isTable(podSpec)) return spec;
  const containers = tables(podSpec['containers']).map((container) => {
    if (container['name'] !== SERVER_CONTAINER) return container;
    const others = tables(container['env']).filter(({ name }) => typeof name !== 'string' || !Object.hasOwn(env, name));
    return { ...container, env: [...others, ...Object.entries(env).map(([name, value]) => ({ name, value: verbatim(value) }))] };
  });
  return { ...spec, template: { ...template, spec: { ...podSpec, containers } } };
}

function alteredObject(manifest: KubeManifest, live: KubeObject | undefined): readonly string[] {
  const what = `${manifest.kind} "${manifest.metadata.name}"`;
  if (live === undefined || live.metadata.deletionTimestamp !== undefined) return [`${what} deleted`];
  const { apiVersion: _version, kind: _kind, ...content } = manifest;
  if (manifest.kind === 'ConfigMap') {
    // Its values may be secrets.
    const { data, ...rest } = content;
    const same = isSameValue(data ?? {}, live['data'] ?? {});
    return [...(same ? [] : [`${what} with other values`]), ...findDifferences(rest, live).map((each) => `${what}: ${phraseOf(each)}`)];
  }
  const spec = tables([manifest['spec']])[0];
  const liveSpec = tables([live['spec']])[0];
  // One more label, and it would select fewer pods.
  const selects = isSameValue(spec?.['selector'], liveSpec?.['selector']) ? [] : [`${what}: another selector`];
  return [...selects, ...findDifferences(content, live).map((each) => `${what}: ${phraseOf(each)}`)];
}

/** Parts of a path that say nothing to whoever reads the phrase. */
const SILENT: ReadonlySet<string> = new Set(['spec', 'template', 'metadata', 'containers', `[${SERVER_CONTAINER}]`]);
const LONGEST_VALUE = 160;

function phraseOf({ path, wanted, found }: Difference): string {
  const where = path
    .filter((part) => !SILENT.has(part))
    .join('.')
    .replaceAll('.[', '[');
  const name = where === '' ? path.join('.') : where;
  if (path.includes('env')) return `${name} with another value`;
  if (path.includes('ownerReferences')) return 'owner missing';
  if (found === undefined || found === null) return `${name} missing`;
  return isTable(wanted) ? `${name} altered` : `${name} ${textOf(found)} instead of ${textOf(wanted)}`;
}

function textOf(value: unknown): string {
  const text = JSON.stringify(value ?? '') ?? '';
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

function tables(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isTable) : [];
}
