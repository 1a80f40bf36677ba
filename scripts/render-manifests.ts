/**
 * Renders the chart into manifests/base: `node scripts/render-manifests.ts`. It needs `helm` on the PATH, or a program in SVC_TEST_HELM that works like
 * "helm template". It is not part of `npm run generate`, because Helm is not available everywhere; a test fails if manifests/base is stale.
 */
import { execFile } from 'node:child_process';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { isTable } from '../src/schema/words/key-case.ts';

type Json = Readonly<Record<string, unknown>>;

export interface RenderedFile {
  readonly name: string;
  readonly text: string;
}

const TOP = join(import.meta.dirname, '..');
const BASE = join(TOP, 'manifests/base');
const CHART = join(TOP, 'helm/svc');
const NOTICE = '# Rendered from helm/svc by "node scripts/render-manifests.ts". Do not edit: patch it in an overlay.\n';
/** Labels of objects that Helm manages. */
const HELM_LABELS = ['helm.sh/chart', 'app.kubernetes.io/managed-by'];
/** The namespace of the base, which overlays may change. */
export const BASE_NAMESPACE = 'svc';

/** Returns the objects of the chart, each with the name of its template. Throws the error of the renderer. */
export async function renderChart(args: readonly string[], release = 'svc', chart = CHART): Promise<readonly (readonly [string, Json])[]> {
  const given = process.env['SVC_TEST_HELM'];
  const common = [release, chart, ...args];
  const run = promisify(execFile);
  const options = { maxBuffer: 64 * 1024 * 1024 };
  const [program, before] = given === undefined ? ['helm', ['template']] : [given, []];
  const { stdout } = await run(program, [...before, ...common], options).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`Install Helm, or set SVC_TEST_HELM to a program that renders charts: "${program}" was not found`, { cause: error });
  });
  return stdout.split(/^---\n/m).flatMap((text): readonly (readonly [string, Json])[] => {
    const source = /^# Source: svc\/(?:templates|crds)\/(.+)\n/m.exec(text)?.[1];
    const object: unknown = parse(text);
    return source === undefined || !isTable(object) ? [] : [[source, object]];
  });
}

/** Whether Helm does not install the object with the release, but runs it at another time, like tests. */
export function isHook({ metadata }: Json): boolean {
  return isTable(metadata) && isTable(metadata['annotations']) && 'helm.sh/hook' in metadata['annotations'];
}

/** Returns all files of manifests/base. */
export async function baseFiles(): Promise<readonly RenderedFile[]> {
  const objects = (await renderChart(['--namespace', BASE_NAMESPACE])).filter(([, object]) => !isHook(object));
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
  const labels = isTable(metadata['labels']) ? Object.entries(metadata['labels']).filter(([key]) => !HELM_LABELS.includes(key)) : [];
  return labels.length === 0 ? object : { ...object, metadata: { ...metadata, labels: Object.fromEntries(labels) } };
}

/** Formats a value as YAML 1.1, the version that kubectl reads, so that the string "off" is quoted. */
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
