/** Checks that the kustomizations and the chart produce the same objects. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { BASE_NAMESPACE, baseFiles, isHook, renderChart, withoutHelm } from '../../scripts/render-manifests.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';

type Json = Readonly<Record<string, unknown>>;

const run = promisify(execFile);
const TOP = join(import.meta.dirname, '../..');
const objectsOf = (text: string): readonly Json[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(isTable);

async function kustomized(directory: string): Promise<ReadonlyMap<string, Json>> {
  const { stdout } = await run('kubectl', ['kustomize', join(TOP, 'manifests', directory)], { maxBuffer: 16 * 1024 * 1024 });
  return byIdentity(objectsOf(stdout));
}

async function charted(...args: readonly string[]): Promise<ReadonlyMap<string, Json>> {
  const objects = await renderChart(['--namespace', BASE_NAMESPACE, '--include-crds', ...args]);
  return byIdentity(objects.flatMap(([, object]) => (isHook(object) ? [] : [withoutHelm(object)])));
}

function byIdentity(objects: readonly Json[]): ReadonlyMap<string, Json> {
  const entries = objects.map((object): readonly [string, Json] => {
    const metadata = isTable(object['metadata']) ? object['metadata'] : {};
    return [`${String(object['kind'])} ${String(metadata['name'])}`, sorted(object)];
  });
  return new Map(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Sorts environment variables: patches change their order, which does not matter because none refers to another. */
function sorted<T>(value: T): T {
  const text = JSON.stringify(value, (key, inner: unknown) =>
    key === 'env' && Array.isArray(inner) ? inner.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))) : inner,
  );
  return JSON.parse(text);
}

describeWithHelm('The kustomizations', () => {
  test('have a base that was rendered from the current chart', async () => {
    const files = await baseFiles();
    expect((await readdir(join(TOP, 'manifests/base'))).toSorted()).toEqual(files.map(({ name }) => name).toSorted());
    for (const { name, text } of files) {
      expect({ name, text: await readFile(join(TOP, 'manifests/base', name), 'utf8') }).toEqual({ name, text });
    }
  });

  test('have a base with the default objects of the chart', async () => {
    const fromChart = await charted();
    expect(await kustomized('base')).toEqual(fromChart);
    expect(fromChart.size).toBeGreaterThan(10);
  });

  test.each(['cpu', 'nvidia', 'amd'])('have an overlay "%s" with the objects of the chart for the example of that name', async (name) => {
    expect(await kustomized(`overlays/${name}`)).toEqual(await charted('--values', join(TOP, `helm/svc/examples/${name}.yaml`)));
  });

  const FEW = ['rbac.editSlots=false', 'rbac.readLogs=false', 'rbac.createClaims=false', 'settings.SVC_DISRUPTION_BUDGETS=0'];
  test.each([
    [['authentication'], ['auth.enabled=true']],
    [['few-rights'], FEW],
    [['shared-limits'], ['limits.urlSecret.name=svc-limits']],
    [
      ['few-rights', 'authentication'],
      ['auth.enabled=true', ...FEW],
    ],
  ])('have the components %j for what the values %j do', async (components, values) => {
    const directory = await mkdtemp(join(tmpdir(), 'svc-components-'));
    const pathTo = (folder: string): string => relative(directory, join(TOP, 'manifests', folder));
    const overlay = { resources: [pathTo('base')], components: components.map((name) => pathTo(`components/${name}`)) };
    await writeFile(join(directory, 'kustomization.yaml'), JSON.stringify(overlay));
    try {
      expect(await kustomized(relative(join(TOP, 'manifests'), directory))).toEqual(
        await charted(...values.flatMap((value) => ['--set', value])),
      );
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
