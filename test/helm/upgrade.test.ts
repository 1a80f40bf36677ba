/** "helm upgrade" from the last release: its values still render, also with "--reuse-values", which knows none of the values that were added since. */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { renderChart } from '../../scripts/render-manifests.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, gatewayOf, listAt, ofKind } from './rendered.ts';

type Json = Readonly<Record<string, unknown>>;

/** What users of 0.2.0 may have set. */
const GIVEN: Readonly<Record<string, Json>> = {
  nothing: {},
  'an Ingress, tokens and monitoring': {
    replicas: 3,
    auth: { enabled: true },
    ingress: { enabled: true, host: 'llm.example', hosts: [{ host: 'models.example', paths: [{ path: '/v1' }] }] },
    httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] },
    serviceMonitor: { enabled: true },
    networkPolicy: { gatewayFrom: [{ podSelector: {} }] },
    chatUi: { enabled: true, tokenSecret: { name: 'chat' } },
    settings: { SVC_DISRUPTION_BUDGETS: false },
    slots: { primary: { backend: 'cpu', model: { default: 'demo-fox' } } },
  },
  'a server of limits': { limits: { urlSecret: { name: 'counts' } } },
  'few rights': { gpus: { allocation: 'device-plugin' }, rbac: { create: false }, networkPolicy: { enabled: false } },
};

describeWithHelm('An upgrade from 0.2.0', () => {
  let old = '';
  beforeAll(async () => {
    old = await mkdtemp(join(tmpdir(), 'svc-upgrade-'));
    await cp(join(import.meta.dirname, '../../helm/svc'), old, { recursive: true });
    await cp(join(import.meta.dirname, 'values-0.2.0.yaml'), join(old, 'values.yaml'));
  });
  afterAll(async () => rm(old, { recursive: true, force: true }));

  /** `defaults`: of which release the values that are not given are. */
  async function render(values: Json, defaults: 'old' | 'new'): Promise<readonly Json[]> {
    await writeFile(join(old, 'given.json'), JSON.stringify(values));
    const args = ['--namespace', 'inference', '--values', join(old, 'given.json')];
    return (await (defaults === 'old' ? renderChart(args, 'svc', old) : renderChart(args))).map(([, object]) => object);
  }

  test.each(Object.entries(GIVEN))('with %s makes the same objects whether or not it reuses the values', async (_what, values) => {
    const reused = await render(values, 'old');
    expect(reused).toEqual(await render(values, 'new'));
    const ports = listAt(gatewayOf(reused), 'spec', 'template', 'spec', 'containers', 0, 'ports').map((port) => at(port, 'name'));
    expect(ports).toEqual(['http', 'management']);
  });

  test('keeps what Kubernetes does not let anyone change, and the address of the models', async () => {
    const objects = await render({}, 'old');
    const labels = { 'app.kubernetes.io/name': 'svc', 'app.kubernetes.io/instance': 'svc', 'app.kubernetes.io/component': 'gateway' };
    expect(at(gatewayOf(objects), 'spec', 'selector', 'matchLabels')).toEqual(labels);
    const service = ofKind(objects, 'Service').find((object) => at(object, 'metadata', 'name') === 'svc');
    expect(service?.['spec']).toEqual({ type: 'ClusterIP', selector: labels, ports: [{ name: 'http', port: 80, targetPort: 'http' }] });
  });

  test.each(['old', 'new'] as const)(
    'stops before it would lock out or promote people whom a proxy forwards (%s defaults)',
    async (defaults) => {
      const auth = { enabled: true, trustedProxies: ['10.244.0.0/16'], proxySecret: { name: 'proxy' } };
      await expect(render({ auth }, defaults)).rejects.toThrow('Set "auth.identityRoles" too');
      const objects = await render({ auth: { ...auth, identityRoles: { '*': 'admin' } } }, defaults);
      const env = listAt(gatewayOf(objects), 'spec', 'template', 'spec', 'containers', 0, 'env');
      expect(env).toContainEqual({ name: 'SVC_IDENTITY_ROLES', value: '*=admin' });
    },
  );
});
