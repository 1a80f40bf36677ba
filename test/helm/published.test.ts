/** Validates the chart and the examples with the published schemas of Kubernetes, Flux, Argo CD and KEDA. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { isTable } from '../../src/schema/key-case.ts';
import { schemaProblem } from '../support/kube/published-schemas.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { renderValues, VALUE_SETS } from './value-sets.ts';

const MANIFESTS = join(import.meta.dirname, '../../manifests');
/** Values of another chart, which are no objects. */
const VALUES = /-values\.yaml$/;

describeWithHelm('The chart', () => {
  test.each(Object.entries(VALUE_SETS))('with the values "%s" renders valid Kubernetes objects', async (_name, values) => {
    const objects = (await renderValues(values)).filter(({ kind }) => kind !== 'SlotSpec');
    expect(objects.length).toBeGreaterThan(3);
    for (const object of objects) expect([object['kind'], schemaProblem(object)]).toEqual([object['kind'], undefined]);
  });
});

describe('The examples', () => {
  test.each(['gitops', 'autoscaling'])('of %s are valid for the programs that read them', async (folder) => {
    const all = await readdir(join(MANIFESTS, folder), { recursive: true });
    const files = all.filter((file) => file.endsWith('.yaml') && !VALUES.test(file));
    expect(files.length).toBeGreaterThan(1);
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
