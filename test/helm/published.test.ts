/** Validates the chart and the examples with the published schemas of Kubernetes, Flux, Argo CD and KEDA. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { slotLabels } from '../../src/cluster/workloads/decide/object-names.ts';
import { gguf } from '../../src/providers/gguf/gguf.ts';
import { LABELS } from '../../src/schema/pod/kube-fields.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { schemaProblem } from '../support/kube/published-schemas.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, listAt } from './rendered.ts';
import { renderValues, VALUE_SETS } from './value-sets.ts';

const MANIFESTS = join(import.meta.dirname, '../../manifests');
/** Values of another chart, which are no objects. */
const VALUES = /-values\.yaml$/;

/** The oldest and the newest version of Kubernetes that the chart is for. */
const VERSIONS = ['1.29', '1.34'];

const EXAMPLES = join(import.meta.dirname, '../../helm/svc/examples');

const tableAt = (value: unknown, ...path: readonly string[]): Readonly<Record<string, unknown>> => {
  const found = at(value, ...path);
  if (!isTable(found)) throw new Error(`No table at "${path.join('.')}"`);
  return found;
};

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
    ['inference-pool', 2],
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
    const pool = (spec: object) =>
      schemaProblem({ apiVersion: 'inference.networking.k8s.io/v1', kind: 'InferencePool', metadata: { name: 'a' }, spec });
    const selector = { matchLabels: { app: 'a' } };
    expect(pool({ selector, targetPorts: [{ number: 8080 }] })).toBeUndefined();
    expect(pool({ selector, targetPorts: [{ number: 8080 }], endpointPickerRef: { name: 'a' } })).toContain('port is required');
    expect(pool({ selector, targetPorts: [{ number: 8080 }, { number: 8080 }] })).toContain('unique');
    expect(pool({ selector: { app: 'a' }, targetPorts: [{ number: 8080 }] })).toContain('matchLabels');
  });

  test('select the pods and the ports that the service and its chart make', async () => {
    const read = async (path: string) =>
      parseAllDocuments(await readFile(join(MANIFESTS, path), 'utf8')).map((document): unknown => document.toJS());
    const [slotPool, policy] = await read('inference-pool/slot.yaml');
    const labels = { ...slotLabels(SlotName.parse('primary')), [LABELS.revision]: 'a' };
    expect(labels).toMatchObject(tableAt(slotPool, 'spec', 'selector', 'matchLabels'));
    expect(tableAt(policy, 'spec', 'podSelector', 'matchLabels')).toEqual(tableAt(slotPool, 'spec', 'selector', 'matchLabels'));
    expect(at(slotPool, 'spec', 'targetPorts', 0, 'number')).toBe(gguf.containerPort);
    const [gatewayPool] = await read('inference-pool/gateway.yaml');
    const [deployment] = await read('base/deployment.yaml');
    const template = at(deployment, 'spec', 'template');
    expect(at(template, 'metadata', 'labels')).toMatchObject(tableAt(gatewayPool, 'spec', 'selector', 'matchLabels'));
    const ports = listAt(template, 'spec', 'containers', 0, 'ports').map((port) => at(port, 'containerPort'));
    expect(ports).toContain(at(gatewayPool, 'spec', 'targetPorts', 0, 'number'));
  });
});
