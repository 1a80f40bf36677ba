/** Tests what users of charts can adapt: names, labels, annotations, volumes, security contexts, the Service and the Ingress. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { SET_BY_CHART } from '../../scripts/generate/helm-values.ts';
import { isHook, renderChart } from '../../scripts/render-manifests.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, gatewayOf, listAt, ofKind } from './rendered.ts';
import { renderValues, VALUE_SETS } from './value-sets.ts';

type Json = Readonly<Record<string, unknown>>;

const EVERYTHING = VALUE_SETS['everything'] ?? {};
const nameOf = (object: unknown): string => String(at(object, 'metadata', 'name'));
const podOf = (objects: readonly Json[]): unknown => at(gatewayOf(objects), 'spec', 'template', 'spec');

/** The fullname of a release, which is the name of the gateway's Deployment. */
async function fullname(release: string, values: Json): Promise<string> {
  const sets = Object.entries(values).flatMap(([key, value]) => ['--set', `${key}=${String(value)}`]);
  return nameOf(gatewayOf((await renderChart(sets, release)).map(([, object]) => object)));
}

describeWithHelm('The chart', () => {
  test('gives each variable to the gateway once', async () => {
    const namesIn = (objects: readonly Json[]) => listAt(podOf(objects), 'containers', 0, 'env').map((each) => String(at(each, 'name')));
    const byDefault = namesIn(await renderValues({})).filter((name) => name.startsWith('SVC_'));
    expect(byDefault.filter((name) => !SET_BY_CHART.some((known) => known === name))).toEqual([]);
    for (const values of Object.values(VALUE_SETS)) {
      const names = namesIn(await renderValues(values));
      expect(names).toEqual([...new Set(names)]);
    }
    const repeated = [
      { name: 'SVC_TURN_SECRET', value: 'a' },
      { name: 'SVC_TURN_SECRET', value: 'b' },
    ];
    await expect(renderValues({ extraEnv: repeated })).rejects.toThrow('SVC_TURN_SECRET is in extraEnv twice: remove one of the entries');
    const twice = { settings: { SVC_LOG_LEVEL: 'debug' }, extraEnv: [{ name: 'SVC_LOG_LEVEL', value: 'info' }] };
    await expect(renderValues(twice)).rejects.toThrow('SVC_LOG_LEVEL is both in settings and in extraEnv: set it in one of them');
  });

  test.each([
    ['svc', {}, 'svc'],
    ['prod', {}, 'prod-svc'],
    ['my-svc', {}, 'my-svc'],
    ['team.a', {}, 'team-a-svc'],
    ['prod', { nameOverride: 'llm' }, 'prod-llm'],
    ['llm-prod', { nameOverride: 'llm' }, 'llm-prod'],
    ['prod', { fullnameOverride: 'models' }, 'models'],
    ['prod', { nameOverride: 'llm', fullnameOverride: 'models' }, 'models'],
    ['prod', { fullnameOverride: 'a'.repeat(80) }, 'a'.repeat(63)],
    ['prod', { fullnameOverride: `${'a'.repeat(62)}-b` }, 'a'.repeat(62)],
    ['r'.repeat(53), { nameOverride: 'b'.repeat(30) }, `${'r'.repeat(53)}-${'b'.repeat(9)}`],
  ])('of the release "%s" with %j is named "%s"', async (release, values, expected) => {
    expect(await fullname(release, values)).toBe(expected);
  });

  test('cuts derived names after 63 characters too, and refers to objects by the names that they have', async () => {
    const objects = await renderValues(VALUE_SETS['long names'] ?? {});
    const names = objects.filter(({ kind }) => !String(kind).startsWith('Cluster')).map(nameOf);
    expect(Math.max(...names.map((name) => name.length))).toBe(63);
    const [config] = ofKind(objects, 'ConfigMap').filter((object) => at(object, 'data', 'toolboxes.toml') !== undefined);
    const volumes = listAt(podOf(objects), 'volumes');
    expect(volumes.find((volume) => at(volume, 'name') === 'config')).toMatchObject({ configMap: { name: nameOf(config) } });
    const [claim] = ofKind(objects, 'PersistentVolumeClaim');
    expect(volumes.find((volume) => at(volume, 'name') === 'models')).toMatchObject({
      persistentVolumeClaim: { claimName: nameOf(claim) },
    });
  });

  test('keeps the labels by which pods are selected, also with other names', async () => {
    const labels = at(
      gatewayOf(await renderValues({ nameOverride: 'llm', fullnameOverride: 'models' })),
      'spec',
      'selector',
      'matchLabels',
    );
    // "svcctl doctor" finds the gateways by the first and the last.
    expect(labels).toEqual({
      'app.kubernetes.io/name': 'svc',
      'app.kubernetes.io/instance': 'svc',
      'app.kubernetes.io/component': 'gateway',
    });
  });

  test('has one object that has the same name in each release of a namespace, so that Helm refuses a second one', async () => {
    const identities = async (release: string) =>
      new Set((await renderChart([], release)).map(([, object]) => `${String(object['kind'])} ${nameOf(object)}`));
    const [first, second] = await Promise.all([identities('first'), identities('second')]);
    expect([...first].filter((identity) => second.has(identity))).toEqual(['ConfigMap svc-one-release-per-namespace']);
  });

  test('has the common labels and annotations on every object and pod, and in no selector', async () => {
    const objects = await renderValues(EVERYTHING);
    const pods = ofKind(objects, 'Deployment').map((object) => at(object, 'spec', 'template'));
    expect(pods.length).toBe(2);
    for (const each of [...objects, ...pods]) {
      const kind = at(each, 'kind') ?? 'pod template';
      expect([kind, at(each, 'metadata', 'labels')]).toEqual([kind, expect.objectContaining({ 'example.com/cost-center': 'ml' })]);
      expect([kind, at(each, 'metadata', 'annotations')]).toEqual([
        kind,
        expect.objectContaining({ 'example.com/owner': 'platform@example.com' }),
      ]);
    }
    const specs = JSON.stringify(objects.map(({ kind, spec }) => (kind === 'Deployment' ? at(spec, 'selector') : spec)));
    expect(specs).not.toContain('cost-center');
    expect(listAt(podOf(objects), 'topologySpreadConstraints').map((each) => JSON.stringify(each))).not.toContain('cost-center');
  });

  test('lets the labels and annotations of an object overrule the common ones', async () => {
    const objects = await renderValues({
      ...EVERYTHING,
      commonAnnotations: { 'example.dev/a': 'common', 'helm.sh/resource-policy': 'delete' },
    });
    expect(at(gatewayOf(objects), 'spec', 'template', 'metadata', 'labels', 'team')).toBe('inference');
    expect(at(gatewayOf(objects), 'metadata', 'labels', 'team')).toBe('platform');
    const service = ofKind(objects, 'Service').find((object) => nameOf(object) === 'inference');
    expect(at(service, 'metadata', 'annotations', 'example.dev/a')).toBe('b');
    expect(at(ofKind(objects, 'PersistentVolumeClaim')[0], 'metadata', 'annotations', 'helm.sh/resource-policy')).toBe('keep');
  });

  test.each([
    ['commonLabels', 'app.kubernetes.io/name'],
    ['commonLabels', 'inference.svc.dev/slot'],
    ['podLabels', 'app.kubernetes.io/component'],
  ])('rejects %s with "%s", by which pods are selected', async (value, label) => {
    await expect(renderValues({ [value]: { [label]: 'a' } })).rejects.toThrow(`Remove "${label}" from "${value}"`);
  });

  test('passes volumes, mounts and the environment from Secrets on to the gateway', async () => {
    const pod = podOf(await renderValues(EVERYTHING));
    expect(listAt(pod, 'volumes')).toContainEqual({ name: 'private-ca', configMap: { name: 'private-ca', optional: true } });
    expect(listAt(pod, 'containers', 0, 'volumeMounts')).toContainEqual({
      name: 'private-ca',
      mountPath: '/etc/private-ca',
      readOnly: true,
    });
    expect(listAt(pod, 'containers', 0, 'env')).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/private-ca/ca.crt' });
    expect(at(pod, 'containers', 0, 'envFrom')).toEqual(EVERYTHING['extraEnvFrom']);
  });

  test('spreads the gateways over nodes, or as the values say, and counts only gateways', async () => {
    const labelSelector = { matchLabels: at(gatewayOf(await renderValues({})), 'spec', 'selector', 'matchLabels') };
    const spread = async (values: Json) => at(podOf(await renderValues(values)), 'topologySpreadConstraints');
    const nodes = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', labelSelector };
    expect(await spread({})).toEqual([nodes]);
    const zones = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' };
    const own = { ...zones, labelSelector: { matchLabels: { app: 'other' } } };
    expect(await spread({ topologySpreadConstraints: [zones, own] })).toEqual([{ ...zones, labelSelector }, own]);
  });

  test('runs as a user of its own, or leaves that to OpenShift', async () => {
    expect(at(podOf(await renderValues({})), 'securityContext')).toMatchObject({ runAsUser: 65_532, runAsGroup: 65_532, fsGroup: 65_532 });
    const example: Json = parse(await readFile(join(import.meta.dirname, '../../helm/svc/examples/openshift.yaml'), 'utf8'));
    const objects = await renderValues(example);
    const withoutUsers = { runAsNonRoot: true, fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } };
    expect(at(podOf(objects), 'securityContext')).toEqual(withoutUsers);
    expect(at(ofKind(objects, 'Pod')[0], 'spec', 'securityContext')).toEqual(withoutUsers);
    const onOpenShift = ['--api-versions', 'security.openshift.io/v1'];
    expect(at(podOf(await renderValues({}, 'a', onOpenShift)), 'securityContext')).toEqual(withoutUsers);
    const given = await renderValues({ podSecurityContext: { runAsUser: 1000, fsGroup: null } }, 'a', onOpenShift);
    expect(at(podOf(given), 'securityContext')).toEqual({ ...withoutUsers, runAsUser: 1000 });
  });

  test('replaces gateways one after the other, or all at once', async () => {
    const strategy = async (values: Json) => at(gatewayOf(await renderValues(values)), 'spec', 'strategy');
    expect(await strategy({})).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
    expect(await strategy({ deploymentStrategy: { type: 'Recreate' } })).toEqual({ type: 'Recreate' });
  });

  test('creates rules and certificates for each host of the Ingress, and tells the gateway its names', async () => {
    const objects = await renderValues(EVERYTHING);
    const [ingress] = ofKind(objects, 'Ingress');
    const rules = listAt(ingress, 'spec', 'rules').map((rule) => [
      at(rule, 'host'),
      listAt(rule, 'http', 'paths').map((path) => [at(path, 'path'), at(path, 'pathType')]),
    ]);
    expect(rules).toEqual([
      ['llm.example', [['/', 'Prefix']]],
      [
        'models.example',
        [
          ['/v1', 'Prefix'],
          ['/v2/rerank', 'Exact'],
        ],
      ],
      ['*.llm.example', [['/', 'Prefix']]],
    ]);
    expect(at(ingress, 'spec', 'tls')).toEqual([
      { secretName: 'llm-tls', hosts: ['llm.example', 'models.example', '*.llm.example'] },
      { secretName: 'models-tls', hosts: ['models.example'] },
    ]);
    const variables = listAt(podOf(objects), 'containers', 0, 'env');
    expect(variables.find((variable) => at(variable, 'name') === 'SVC_ALLOWED_HOSTS')).toMatchObject({
      value: 'llm.example,models.example,*.llm.example',
    });
    await expect(renderValues({ ingress: { enabled: true } })).rejects.toThrow('Set "ingress.host" or "ingress.hosts"');
  });

  test.each([
    [{ loadBalancerClass: 'a' }, 'Set "service.type" to "LoadBalancer"'],
    [{ type: 'NodePort', loadBalancerSourceRanges: ['10.0.0.0/8'] }, 'Set "service.type" to "LoadBalancer"'],
    [{ externalTrafficPolicy: 'Local' }, 'Set "service.type" to "NodePort" or "LoadBalancer"'],
    [{ nodePort: 30_080 }, 'Set "service.type" to "NodePort" or "LoadBalancer"'],
  ])('rejects a Service with %j', async (service, problem) => {
    await expect(renderValues({ service })).rejects.toThrow(problem);
  });

  test('gives the gateways the server of limits, from a Secret or as it stands, and lets them connect to it', async () => {
    const withLimits = async (values: Json) => {
      const objects = await renderValues(values);
      const policy = ofKind(objects, 'NetworkPolicy').find((object) => nameOf(object) === nameOf(gatewayOf(objects)));
      const ports = listAt(policy, 'spec', 'egress').flatMap((rule) => listAt(rule, 'ports').map((port) => at(port, 'port')));
      const entries = listAt(podOf(objects), 'containers', 0, 'env');
      return { entry: entries.find((each) => at(each, 'name') === 'SVC_LIMITS_URL'), ports };
    };
    const none = await withLimits({});
    expect(none.entry).toBeUndefined();
    expect(none.ports).not.toContain(6379);
    const plain = await withLimits({ limits: { url: 'redis://valkey:6379' } });
    expect(plain.entry).toEqual({ name: 'SVC_LIMITS_URL', value: 'redis://valkey:6379' });
    expect(plain.ports.filter((port) => port !== 6379)).toEqual(none.ports);
    expect(plain.ports).toContain(6379);
    const secret = await withLimits({ limits: { urlSecret: { name: 'counts' } }, networkPolicy: { limitsPorts: [6380] } });
    expect(secret.entry).toEqual({ name: 'SVC_LIMITS_URL', valueFrom: { secretKeyRef: { name: 'counts', key: 'url' } } });
    expect(secret.ports).toContain(6380);
    await expect(renderValues({ limits: { url: 'redis://valkey', urlSecret: { name: 'counts' } } })).rejects.toThrow(
      'Set either "limits.url" or "limits.urlSecret.name", not both',
    );
  });

  test.each(Object.entries(VALUE_SETS))(
    'with the values "%s" has one test, which may reach the gateway and has no rights',
    async (_name, values) => {
      const objects = await renderValues(values);
      const [pod, ...more] = objects.filter(isHook);
      expect([pod?.['kind'], more]).toEqual(['Pod', []]);
      expect(at(pod, 'metadata', 'annotations')).toMatchObject({ 'helm.sh/hook': 'test' });
      expect(pod?.['spec']).toMatchObject({
        automountServiceAccountToken: false,
        restartPolicy: 'Never',
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          { image: at(podOf(objects), 'containers', 0, 'image'), securityContext: at(podOf(objects), 'containers', 0, 'securityContext') },
        ],
      });
      const labels = at(pod, 'metadata', 'labels');
      expect(labels).not.toMatchObject(Object(at(gatewayOf(objects), 'spec', 'selector', 'matchLabels')));
      const policy = ofKind(objects, 'NetworkPolicy').find((object) => nameOf(object) === nameOf(gatewayOf(objects)));
      const peers = listAt(policy, 'spec', 'ingress', 0, 'from').map((peer) => at(peer, 'podSelector', 'matchLabels'));
      if (peers.length > 0) expect(peers.some((peer) => peer !== undefined && contains(labels, peer))).toBe(true);
    },
  );
});

function contains(labels: unknown, wanted: unknown): boolean {
  return Object.entries(Object(wanted)).every(([key, value]) => at(labels, key) === value);
}
