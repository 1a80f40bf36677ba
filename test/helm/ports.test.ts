/** Two ports: who reaches the models and who reaches management, by Services, NetworkPolicies and the Ingress. And rights only for what is in use. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, gatewayOf, listAt, ofKind } from './rendered.ts';
import { renderValues } from './value-sets.ts';

type Json = Readonly<Record<string, unknown>>;

const named = (objects: readonly Json[], kind: string, name: string): Json | undefined =>
  ofKind(objects, kind).find((object) => at(object, 'metadata', 'name') === name);
const ingressOf = (objects: readonly Json[], name = 'svc'): readonly unknown[] =>
  listAt(named(objects, 'NetworkPolicy', name), 'spec', 'ingress');
const peersAt = (objects: readonly Json[], port: string): unknown =>
  at(
    ingressOf(objects).find((rule) => listAt(rule, 'ports').some((each) => at(each, 'port') === port)),
    'from',
  );
const portsOf = (objects: readonly Json[]) => listAt(gatewayOf(objects), 'spec', 'template', 'spec', 'containers', 0, 'ports');
const rulesOf = (objects: readonly Json[], kind: string) => ofKind(objects, kind).flatMap((role) => listAt(role, 'rules'));
const rightsIn = (rules: readonly unknown[], where = ''): readonly string[] =>
  rules.flatMap((rule) =>
    listAt(rule, 'resources').flatMap((resource) => listAt(rule, 'verbs').map((verb) => `${String(verb)} ${String(resource)}${where}`)),
  );
const rightsOf = (objects: readonly Json[]): readonly string[] => [
  ...rightsIn(rulesOf(objects, 'Role')),
  ...rightsIn(rulesOf(objects, 'ClusterRole'), ' of the cluster'),
];

const APPS = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'apps' } } };
const MONITORING = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } };

describeWithHelm('The chart', () => {
  test('by default lets everyone reach the models, and only its own namespace management', async () => {
    const objects = await renderValues({});
    expect(portsOf(objects)).toEqual([
      { name: 'http', containerPort: 8080 },
      { name: 'management', containerPort: 8081 },
    ]);
    expect(ingressOf(objects)).toEqual([
      { ports: [{ port: 'http', protocol: 'TCP' }] },
      { ports: [{ port: 'management', protocol: 'TCP' }], from: [{ podSelector: {} }] },
    ]);
  });

  test('lets the peers of its values reach the port that they are for', async () => {
    const objects = await renderValues({ networkPolicy: { gatewayFrom: [APPS], managementFrom: [MONITORING] } });
    expect(peersAt(objects, 'http')).toEqual([
      APPS,
      { podSelector: { matchLabels: expect.objectContaining({ 'app.kubernetes.io/component': 'test' }) } },
    ]);
    expect(peersAt(objects, 'management')).toEqual([{ podSelector: {} }, MONITORING]);
  });

  test('never exposes management with the Service of the models, whatever its type', async () => {
    const objects = await renderValues({ service: { type: 'LoadBalancer', port: 8000 }, fullnameOverride: 'models' });
    expect(at(named(objects, 'Service', 'models'), 'spec', 'ports')).toEqual([{ name: 'http', port: 8000, targetPort: 'http' }]);
    const management = named(objects, 'Service', 'models-management');
    expect(management?.['spec']).toMatchObject({ type: 'ClusterIP', ports: [{ name: 'management', port: 80, targetPort: 'management' }] });
  });

  test('scrapes metrics from the port that has them', async () => {
    const port = async (values: Json) => {
      const objects = await renderValues({ ...values, serviceMonitor: { enabled: true } });
      const [monitor] = ofKind(objects, 'ServiceMonitor');
      const found = at(monitor, 'spec', 'endpoints', 0, 'port');
      const selected = ofKind(objects, 'Service').filter((service) =>
        listAt(service, 'spec', 'ports').some((each) => at(each, 'name') === found),
      );
      expect(selected.map((service) => at(service, 'metadata', 'labels'))).toEqual([
        expect.objectContaining(Object(at(monitor, 'spec', 'selector', 'matchLabels'))),
      ]);
      return found;
    };
    expect(await port({})).toBe('management');
    expect(await port({ service: { separateManagement: false } })).toBe('http');
  });

  test('has one port, Service and rule for everything where the values say so', async () => {
    const objects = await renderValues({ service: { separateManagement: false }, networkPolicy: { gatewayFrom: [APPS] } });
    expect(portsOf(objects)).toEqual([{ name: 'http', containerPort: 8080 }]);
    expect(ofKind(objects, 'Service').length).toBe(1);
    expect(ingressOf(objects).length).toBe(1);
    expect(JSON.stringify(objects)).not.toContain('MANAGEMENT');
  });

  test('leads the hosts of an Ingress to the models, unless they are for management', async () => {
    const hosts = [{ host: 'models.example' }, { host: 'svc.example', management: true }];
    const backends = async (values: Json) => {
      const [ingress] = ofKind(await renderValues({ ingress: { enabled: true, hosts }, ...values }), 'Ingress');
      return listAt(ingress, 'spec', 'rules').map((rule) => at(rule, 'http', 'paths', 0, 'backend', 'service'));
    };
    const models = { name: 'svc', port: { name: 'http' } };
    expect(await backends({})).toEqual([models, { name: 'svc-management', port: { name: 'management' } }]);
    expect(await backends({ service: { separateManagement: false } })).toEqual([models, models]);
  });

  test('asks both ports of a pod nothing but health, and on the one that is always there', async () => {
    const pod = at(gatewayOf(await renderValues({})), 'spec', 'template', 'spec', 'containers', 0);
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
      expect(at(pod, probe, 'httpGet')).toEqual({ path: expect.stringMatching(/^\/api\/health\//), port: 'http' });
  });

  test.each<readonly [Json, readonly string[]]>([
    [{ rbac: { editSlots: false } }, ['create slotspecs', 'patch slotspecs', 'delete slotspecs']],
    [{ rbac: { readLogs: false } }, ['get pods/log']],
    [{ rbac: { createClaims: false } }, ['create persistentvolumeclaims', 'patch persistentvolumeclaims']],
    [{ settings: { SVC_DISRUPTION_BUDGETS: false } }, ['create poddisruptionbudgets', 'patch poddisruptionbudgets']],
    [{ settings: { SVC_DISRUPTION_BUDGETS: '0' } }, ['create poddisruptionbudgets', 'patch poddisruptionbudgets']],
    [{ settings: { SVC_REVISION_HISTORY: 0 } }, ['list', 'create', 'patch', 'delete'].map((verb) => `${verb} controllerrevisions`)],
    [{ auth: { enabled: false } }, ['get secrets', 'list secrets', 'watch secrets', 'patch secrets']],
  ])('with %j grants all rights but %j', async (values, without) => {
    const all = rightsOf(await renderValues({ auth: { enabled: true } }));
    expect(all).toEqual(expect.arrayContaining([...without]));
    expect(rightsOf(await renderValues({ auth: { enabled: true }, ...values }))).toEqual(all.filter((right) => !without.includes(right)));
  });

  test('lets the leader migrate versions where that is asked for: the definition of slots only, and no slot of another namespace', async () => {
    const all = rightsOf(await renderValues({}));
    expect(rightsOf(await renderValues({ rbac: { migrateVersions: true } })).filter((right) => !all.includes(right))).toEqual([
      'get customresourcedefinitions of the cluster',
      'patch customresourcedefinitions/status of the cluster',
      'list slotspecs of the cluster',
    ]);
    const rules = rulesOf(await renderValues({ rbac: { migrateVersions: true } }), 'ClusterRole');
    const group = 'apiextensions.k8s.io';
    const resourceNames = ['slotspecs.inference.svc.dev'];
    expect(rules.filter((rule) => listAt(rule, 'apiGroups').includes(group))).toEqual([
      { apiGroups: [group], resources: ['customresourcedefinitions'], resourceNames, verbs: ['get'] },
      { apiGroups: [group], resources: ['customresourcedefinitions/status'], resourceNames, verbs: ['patch'] },
    ]);
    const slots = async (rbac: Json) =>
      rightsIn(rulesOf(await renderValues({ rbac }), 'ClusterRole')).filter((right) => right.includes('slotspecs'));
    expect(await slots({ migrateVersions: true })).toEqual(['list slotspecs']);
    expect(await slots({ migrateVersions: true, migrateAllNamespaces: true })).toEqual(['list slotspecs', 'patch slotspecs/status']);
    expect(await slots({ migrateAllNamespaces: true })).toEqual([]);
  });

  test('has an example for production with authentication, peers of each port and few rights', async () => {
    const example: Json = parse(await readFile(join(import.meta.dirname, '../../helm/svc/examples/production.yaml'), 'utf8'));
    const objects = await renderValues(example);
    const env = listAt(gatewayOf(objects), 'spec', 'template', 'spec', 'containers', 0, 'env');
    expect(env).toContainEqual({ name: 'SVC_AUTH_ENABLED', value: '1' });
    for (const port of ['http', 'management'])
      expect([port, peersAt(objects, port)]).toEqual([port, expect.arrayContaining([expect.anything()])]);
    expect(rightsOf(objects)).not.toContain('create slotspecs');
    expect(ofKind(objects, 'ClusterRole')).toEqual([]);
    const [ingress] = ofKind(objects, 'Ingress');
    expect(JSON.stringify(ingress)).not.toContain('management');
  });
});
