/** Validates the chart and the examples with the published schemas of Kubernetes, Flux, Argo CD and KEDA. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { isTable } from '../../src/schema/words/key-case.ts';
import { schemaProblem } from '../support/kube/published-schemas.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { renderValues, VALUE_SETS } from './value-sets.ts';

const MANIFESTS = join(import.meta.dirname, '../../manifests');
/** Values of another chart, which are no objects. */
const VALUES = /-values\.yaml$/;

/** The oldest and the newest version of Kubernetes that the chart is for. */
const VERSIONS = ['1.29', '1.34'];

const EXAMPLES = join(import.meta.dirname, '../../helm/svc/examples');

/** Renders the values for each version, and checks all objects. */
async function expectValid(values: Readonly<Record<string, unknown>>): Promise<void> {
  const [oldest = [], ...others] = await Promise.all(
    VERSIONS.map(async (version) => renderValues(values, 'inference', ['--kube-version', `v${version}.0`])),
  );
  for (const other of others) expect(other).toEqual(oldest);
  const objects = oldest.filter(({ kind }) => kind !== 'SlotSpec');
  expect(objects.length).toBeGreaterThan(3);
  for (const object of objects) expect([object['kind'], schemaProblem(object)]).toEqual([object['kind'], undefined]);
}

describeWithHelm('The chart', () => {
  test.each(Object.entries(VALUE_SETS))('with the values "%s" renders valid Kubernetes objects', async (_name, values) => {
    await expectValid(values);
  });

  test('renders valid Kubernetes objects with each of its examples', async () => {
    const names = await readdir(EXAMPLES);
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) await expectValid(parse(await readFile(join(EXAMPLES, name), 'utf8')));
  });
});

describe('The examples', () => {
  test.each([
    ['gitops', 2],
    ['autoscaling', 2],
    ['admission', 1],
  ])('of %s are valid for the programs that read them', async (folder, count) => {
    const all = await readdir(join(MANIFESTS, folder), { recursive: true });
    const files = all.filter((file) => file.endsWith('.yaml') && !VALUES.test(file));
    expect(files.length).toBeGreaterThanOrEqual(count);
    for (const file of files) {
      for (const document of parseAllDocuments(await readFile(join(MANIFESTS, folder, file), 'utf8'))) {
        const object: unknown = document.toJS();
        expect([file, isTable(object) ? schemaProblem(object) : 'no object']).toEqual([file, undefined]);
      }
    }
  });

  test('would be rejected with a wrong value', () => {
    const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'a' }, spec: { maxUnavailable: true } };
    expect(schemaProblem(budget)).toContain('maxUnavailable');
  });
});
