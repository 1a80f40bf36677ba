/** Checks the chart on a real API server: each set of values is rendered and applied with `--dry-run=server`. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { renderValues, VALUE_SETS } from '../helm/value-sets.ts';
import { schemaProblem } from '../support/kube/published-schemas.ts';
import { describeWithCluster, kubectl } from '../support/require/require-cluster.ts';

type Json = Readonly<Record<string, unknown>>;

const NAMESPACE = `svc-chart-${process.pid}`;

/** Whether this API server serves the kind at all: an old one lacks some, and a bare one lacks the kinds of add-ons. */
async function isServed({ apiVersion, kind }: Json): Promise<boolean> {
  const groupVersion = String(apiVersion);
  const listed = await kubectl(['get', '--raw', groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`]).catch(
    () => '{}',
  );
  const { resources = [] }: { readonly resources?: readonly { readonly kind: string }[] } = JSON.parse(listed);
  return resources.some((resource) => resource.kind === kind);
}

async function rejection(object: Json): Promise<string | undefined> {
  const applied = kubectl(['--namespace', NAMESPACE, 'apply', '--dry-run=server', '--filename', '-'], JSON.stringify(object));
  return applied.then(
    () => undefined,
    (error: Error) => error.message,
  );
}

describeWithCluster('The chart', () => {
  beforeAll(async () => {
    await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=120s']);
    await kubectl(['create', 'namespace', NAMESPACE]);
  }, 180_000);
  afterAll(async () => void (await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=120s'])), 180_000);

  test.each(Object.entries(VALUE_SETS))(
    'with the values "%s" is accepted by the API server',
    async (_name, values) => {
      const unserved: string[] = [];
      for (const object of await renderValues(values, NAMESPACE)) {
        const kind = String(object['kind']);
        if (await isServed(object)) expect([kind, await rejection(object)]).toEqual([kind, undefined]);
        else {
          unserved.push(kind);
          expect([kind, schemaProblem(object)]).toEqual([kind, undefined]);
        }
      }
      expect(['HTTPRoute', 'PodDisruptionBudget', 'PrometheusRule', 'ServiceMonitor']).toEqual(
        expect.arrayContaining([...new Set(unserved)]),
      );
    },
    120_000,
  );

  test('is rejected if a slot in its values is invalid', async () => {
    const [slot] = (await renderValues({ slots: { primary: { model: { default: 'a' }, backend: 'npu' } } }, NAMESPACE)).filter(
      ({ kind }) => kind === 'SlotSpec',
    );
    expect(await rejection(slot ?? {})).toMatch(/spec\.backend/);
  });
});
