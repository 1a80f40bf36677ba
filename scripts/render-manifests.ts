/**
 * Writes manifests/base from the chart: `node scripts/render-manifests.ts`, with `helm` on the PATH or a program that renders as "helm template" does named
 * in SVC_TEST_HELM. No part of `npm run generate`, since Helm is not there everywhere; a test says when the base is stale.
 */
import { execFile } from 'node:child_process';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { isTable } from '../src/schema/key-case.ts';

type Json = Readonly<Record<string, unknown>>;

export interface RenderedFile {
  readonly name: string;
  readonly text: string;
}

const TOP = join(import.meta.dirname, '..');
const BASE = join(TOP, 'manifests/base');
const NOTICE = '# Rendered from helm/svc by "node scripts/render-manifests.ts". Do not edit: patch it in an overlay.\n';
/** What says that Helm manages an object. */
const HELMS_OWN = ['helm.sh/chart', 'app.kubernetes.io/managed-by'];
/** Of the base: an overlay may name another one. */
export const BASE_NAMESPACE = 'svc';

/** The chart's objects, each with the name of its template. Fails with what the renderer says. */
export async function renderChart(args: readonly string[]): Promise<readonly (readonly [string, Json])[]> {
  const given = process.env['SVC_TEST_HELM'];
  const common = ['svc', join(TOP, 'helm/svc'), ...args];
  const run = promisify(execFile);
  const options = { maxBuffer: 64 * 1024 * 1024 };
  const [program, before] = given === undefined ? ['helm', ['template']] : [given, []];
  const { stdout } = await run(program, [...before, ...common], options).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`Install Helm, or name a program that renders charts in SVC_TEST_HELM: "${program}" is not there`, { cause: error });
  });
  return stdout.split(/^---\n/m).flatMap((text): readonly (readonly [string, Json])[] => {
    const source = /^# Source: svc\/(?:templates|crds)\/(.+)\n/m.exec(text)?.[1];
    const object: unknown = parse(text);
    return source === undefined || !isTable(object) ? [] : [[source, object]];
  });
}

/** Every file of manifests/base. */
export async function baseFiles(): Promise<readonly RenderedFile[]> {
  const objects = await renderChart(['--namespace', BASE_NAMESPACE]);
  const names = [...new Set(objects.map(([name]) => name))].toSorted();
  const files = names.map((name) => ({
    name,
    text: NOTICE + objects.flatMap(([other, object]) => (other === name ? [yamlOf(withoutHelm(object))] : [])).join('---\n'),
  }));
  const kustomization = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources: ['../../crds', ...names] };
  return [...files, { name: 'kustomization.yaml', text: NOTICE + yamlOf(kustomization) }];
}

export function withoutHelm(object: Json): Json {
  const metadata = isTable(object['metadata']) ? object['metadata'] : {};
  const labels = isTable(metadata['labels']) ? Object.entries(metadata['labels']).filter(([key]) => !HELMS_OWN.includes(key)) : [];
  return labels.length === 0 ? object : { ...object, metadata: { ...metadata, labels: Object.fromEntries(labels) } };
}

/** In YAML 1.1, which is what kubectl reads: an "off" stays a text. */
function yamlOf(value: unknown): string {
  return stringify(value, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
}

async function main(): Promise<void> {
  const files = await baseFiles();
  await mkdir(BASE, { recursive: true });
  const gone = (await readdir(BASE)).filter((name) => !files.some((file) => file.name === name));
  await Promise.all(gone.map(async (name) => rm(join(BASE, name))));
  await Promise.all(files.map(async ({ name, text }) => writeFile(join(BASE, name), text)));
  console.log(`Wrote ${files.length} files to "manifests/base"`);
}

if (import.meta.main) {
  await main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
