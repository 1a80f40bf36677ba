/** Tests the rendered objects of the chart. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse as parseToml } from 'smol-toml';
import { parseSettings, type ParsedSettings } from '../../src/schema/settings/settings.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { parseSlot } from '../../src/schema/slot/slot-spec.ts';
import { parseCatalogue } from '../../src/models/catalogue/decide/parse-catalogue.ts';
import { WORKFLOWS_MOUNT } from '../../src/models/decide/workflows-mount.ts';
import { ToolboxManifest } from '../../src/schema/slot/toolbox-images.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, gatewayOf, listAt, ofKind } from './rendered.ts';
import { renderValues, VALUE_SETS } from './value-sets.ts';

type Json = Readonly<Record<string, unknown>>;

const container = (objects: readonly Json[]): unknown => at(gatewayOf(objects), 'spec', 'template', 'spec', 'containers', 0);

const textAt = (value: unknown, key: string): string | undefined => {
  const found = at(value, key);
  return typeof found === 'string' ? found : undefined;
};

/** Parses the environment of the gateway container. */
/** What Secrets and pods say. */
const FROM_ELSEWHERE: Readonly<Record<string, string>> = { SVC_LIMITS_URL: 'redis://:secret@valkey:6380' };

function settingsOf(objects: readonly Json[]): ParsedSettings {
  const variables = listAt(container(objects), 'env').map((each) => [
    textAt(each, 'name'),
    textAt(each, 'value') ?? FROM_ELSEWHERE[textAt(each, 'name') ?? ''] ?? '8c1f0e3a-1b2c-4d5e-8f90-123456789abc',
  ]);
  return parseSettings(Object.fromEntries(variables));
}

describeWithHelm('The chart', () => {
  test.each(Object.entries(VALUE_SETS))('with the values "%s" sets an environment that the service accepts', async (_name, values) => {
    const parsed = settingsOf(await renderValues(values));
    expect(parsed.ok ? [] : parsed.problems).toEqual([]);
  });

  test('tells the gateway what the pods of slots have in common', async () => {
    const variables = async (values: Json, release: readonly string[] = []): Promise<Readonly<Record<string, unknown>>> =>
      Object.fromEntries(
        listAt(container(await renderValues(values, 'inference', release)), 'env').map((each) => [at(each, 'name'), at(each, 'value')]),
      );
    expect(await variables(VALUE_SETS['everything'] ?? {})).toMatchObject({
      SVC_IMAGE_PULL_SECRETS: 'registry,toolboxes',
      SVC_POD_USER: '1000680000',
      SVC_POD_PROXY_SECRET: 'proxy',
      HTTPS_PROXY: 'http://proxy.example:3128',
      NO_PROXY: '.example',
    });
    const usual = await variables({});
    for (const name of ['SVC_IMAGE_PULL_SECRETS', 'SVC_POD_USER', 'HTTPS_PROXY']) expect(usual).not.toHaveProperty(name);
    expect(await variables({ slotPods: { user: 'any' } })).toMatchObject({ SVC_POD_USER: 'any' });
    expect(await variables({}, ['--api-versions', 'security.openshift.io/v1'])).toMatchObject({ SVC_POD_USER: 'any' });
    await expect(renderValues({ slotPods: { proxy: { httpProxy: 'http://me:secret@proxy' } } })).rejects.toThrow(
      /slotPods\.proxy\.secretName/,
    );
  });

  test('tells gateway and pods where models come from, and takes the token of the Hub from a Secret only', async () => {
    const objects = await renderValues(VALUE_SETS['everything'] ?? {});
    const env = listAt(container(objects), 'env');
    const secretKeyRef = { name: 'hugging-face', key: 'HF_TOKEN', optional: true };
    expect(env).toEqual(
      expect.arrayContaining([
        { name: 'HF_ENDPOINT', value: 'https://mirror.example' },
        { name: 'HF_TOKEN', valueFrom: { secretKeyRef } },
        { name: 'SVC_HF_TOKEN_SECRET', value: 'hugging-face' },
        { name: 'SVC_ACCEPTED_LICENSES', value: 'llama3.2,gemma' },
        { name: 'HTTP_PROXY', valueFrom: { secretKeyRef: { name: 'proxy', key: 'HTTP_PROXY', optional: true } } },
      ]),
    );
    expect(env.filter((each) => at(each, 'name') === 'HTTPS_PROXY')).toEqual([{ name: 'HTTPS_PROXY', value: 'http://proxy.example:3128' }]);
    const usual = await renderValues({});
    expect(JSON.stringify(listAt(container(usual), 'env'))).not.toMatch(/HF_|LICENSES/);
    await expect(renderValues({ models: { hub: { endpoint: 'https://me:secret@mirror.example' } } })).rejects.toThrow(/endpoint/);
    const allowed = ofKind(usual, 'NetworkPolicy').map((policy) => JSON.stringify(listAt(at(policy, 'spec'), 'egress')));
    expect(allowed.filter((egress) => egress.includes('169.254.0.0/16')).length).toBe(2);
  });

  test.each(Object.entries(VALUE_SETS))(
    'with the values "%s" runs the gateway with the restricted security profile',
    async (_name, values) => {
      const objects = await renderValues(values);
      expect(at(gatewayOf(objects), 'spec', 'template', 'spec')).toMatchObject({
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      expect(at(container(objects), 'securityContext')).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    },
  );

  test('passes on settings, GPUs and models', async () => {
    const everything = settingsOf(await renderValues(VALUE_SETS['everything'] ?? {}));
    expect(everything.ok && everything.settings).toMatchObject({
      SVC_LOG_LEVEL: 'debug',
      SVC_MAX_CONNECTIONS: 1_000_000,
      SVC_MODELS_CLAIM: 'inference-models',
      SVC_MODELS_DIR: '/models',
      SVC_IMAGE: `registry.example/svc@sha256:${'a'.repeat(64)}`,
    });
    const onNodes = settingsOf(await renderValues(VALUE_SETS['models on nodes'] ?? {}));
    expect(onNodes.ok && onNodes.settings).toMatchObject({
      SVC_MODELS_HOST_PATH: '/srv/models',
      SVC_GPU_ALLOCATION: 'dra',
      SVC_GPU_RESOURCES: { cuda: 'nvidia.com/mig-1g.10gb' },
    });
    expect(onNodes.ok && onNodes.settings.SVC_MODELS_CLAIM).toBe(undefined);
  });

  test('mounts the ConfigMap with workflows into gateways, which start without it too', async () => {
    const objects = await renderValues(VALUE_SETS['everything'] ?? {});
    const parsed = settingsOf(objects);
    expect(parsed.ok && parsed.settings.SVC_WORKFLOWS_CONFIG_MAP).toBe('workflows');
    const pod = at(gatewayOf(objects), 'spec', 'template', 'spec');
    expect(at(pod, 'volumes')).toContainEqual({ name: 'workflows', configMap: { name: 'workflows', optional: true } });
    const { directory } = WORKFLOWS_MOUNT;
    expect(at(container(objects), 'volumeMounts')).toContainEqual({ name: 'workflows', mountPath: directory, readOnly: true });
    expect(JSON.stringify(gatewayOf(await renderValues({})))).not.toContain('workflows');
  });

  test('creates the dashboard for the sidecar of Grafana only where it is wanted, unchanged, with its label and folder', async () => {
    const dashboards = (objects: readonly Json[]) =>
      ofKind(objects, 'ConfigMap').filter((object) => at(object, 'metadata', 'labels', 'grafana_dashboard') === '1');
    expect(dashboards(await renderValues({}))).toEqual([]);
    const [found, ...more] = dashboards(
      await renderValues({ grafanaDashboard: { enabled: true, folder: 'GPU & LLM', folderAnnotation: 'example.dev/folder' } }),
    );
    expect(more).toEqual([]);
    expect(at(found, 'metadata', 'annotations')).toEqual({ 'example.dev/folder': 'GPU & LLM' });
    const dashboard = textAt(at(found, 'data'), 'svc.json') ?? '';
    expect(JSON.parse(dashboard)).toEqual(
      JSON.parse(await readFile(join(import.meta.dirname, '../../manifests/monitoring/grafana-dashboard.json'), 'utf8')),
    );
    // The API server accepts at most 1 MiB.
    expect(dashboard.length).toBeLessThan(500_000);
    const plain = dashboards(await renderValues({ grafanaDashboard: { enabled: true } }));
    expect(plain.map((object) => at(object, 'metadata', 'annotations'))).toEqual([undefined]);
  });

  test('tells the gateway the names under which clients reach it', async () => {
    const plain = settingsOf(await renderValues({}));
    expect(plain.ok && [plain.settings.SVC_SERVICE_NAME, plain.settings.SVC_ALLOWED_HOSTS]).toEqual([['svc', 'svc-management'], []]);
    const parsed = settingsOf(
      await renderValues({
        fullnameOverride: 'models',
        settings: { SVC_ALLOWED_HOSTS: 'gpu.example.com' },
        ingress: { enabled: true, host: 'ai.example.com' },
        httpRoute: { enabled: true, parentRefs: [{ name: 'public' }], hostnames: ['llm.example.com', '*.ai.example.com'] },
      }),
    );
    expect(parsed.ok && parsed.settings).toMatchObject({
      SVC_SERVICE_NAME: ['models', 'models-management'],
      SVC_ALLOWED_HOSTS: ['gpu.example.com', 'ai.example.com', 'llm.example.com', '*.ai.example.com'],
    });
  });

  test('rejects two storages for models', async () => {
    const values = { models: { hostPath: '/srv/models', claim: { name: 'models' } } };
    await expect(renderValues(values)).rejects.toThrow('Set either "models.claim" or "models.hostPath", not both');
  });

  test('writes toolbox images in the format of the service', async () => {
    const { toolboxes } = VALUE_SETS['everything'] ?? {};
    const [config] = ofKind(await renderValues({ toolboxes }), 'ConfigMap');
    expect(ToolboxManifest.parse(parseToml(String(at(config, 'data', 'toolboxes.toml'))))).toEqual(toolboxes);
    const [empty] = ofKind(await renderValues({}), 'ConfigMap');
    expect(parseToml(String(at(empty, 'data', 'toolboxes.toml')))).toEqual({});
  });

  test('writes models of the user as the service reads them, and no file without any', async () => {
    const { models } = VALUE_SETS['everything'] ?? {};
    const [config] = ofKind(await renderValues({ models }), 'ConfigMap');
    const { records, problems } = parseCatalogue(String(at(config, 'data', 'models.toml')), 'models.toml');
    expect({ ids: [...records.keys()], problems }).toEqual({ ids: ['own'], problems: [] });
    expect(records.get('own')?.family).toBe("{{ not a template }}: '#'");
    const [empty] = ofKind(await renderValues({}), 'ConfigMap');
    expect(at(empty, 'data', 'models.toml')).toBeUndefined();
  });

  test('renders slots that the service accepts', async () => {
    const slots = ofKind(await renderValues(VALUE_SETS['everything'] ?? {}), 'SlotSpec');
    expect(new Set(slots.map((slot) => at(slot, 'metadata', 'name')))).toEqual(new Set(['embed', 'primary']));
    for (const slot of slots) expect(parseSlot(SlotName.parse(at(slot, 'metadata', 'name')), slot['spec'], 'camelCase').ok).toBe(true);
  });

  test('requests cluster-wide permissions only for device classes and the definition of slots, and names them after the namespace', async () => {
    const named = (objects: readonly Json[]) => ofKind(objects, 'ClusterRole').map((role) => at(role, 'metadata', 'name'));
    expect(named(await renderValues({}, 'one'))).toEqual(['svc-one-device-classes']);
    const without = await renderValues({ gpus: { allocation: 'device-plugin' } });
    expect(named(without)).toEqual([]);
    expect(JSON.stringify(without)).not.toContain('resource.k8s.io');
    expect(named(await renderValues({ gpus: { allocation: 'dra' } }))).toEqual([]);
    expect(named(await renderValues({ rbac: { migrateVersions: true } }, 'one'))).toEqual(['svc-one-device-classes', 'svc-one-definition']);
    expect(ofKind(await renderValues({ rbac: { create: false } }), 'Role')).toEqual([]);
  });

  test('binds the permissions to its own service account in its own namespace', async () => {
    for (const binding of (await renderValues({}, 'two')).filter(({ kind }) => String(kind).endsWith('Binding')))
      expect(binding['subjects']).toEqual([{ kind: 'ServiceAccount', name: 'svc', namespace: 'two' }]);
  });

  test('allows only gateways to connect to the servers in slots', async () => {
    const [slots] = ofKind(await renderValues({}), 'NetworkPolicy');
    expect(at(slots, 'spec', 'podSelector')).toEqual({ matchExpressions: [{ key: 'inference.svc.dev/slot', operator: 'Exists' }] });
    const labels = at(gatewayOf(await renderValues({})), 'spec', 'template', 'metadata', 'labels');
    expect(at(slots, 'spec', 'ingress')).toEqual([{ from: [{ podSelector: { matchLabels: labels } }] }]);
    expect(at(slots, 'spec', 'egress', 1, 'to', 0, 'ipBlock', 'except')).toEqual(['169.254.0.0/16']);
  });

  test.each([
    ['http://prometheus.monitoring:9090/', 9090],
    ['http://prometheus.monitoring', 80],
    ['https://prometheus.monitoring/here', 443],
    ['http://[fd00::1]:9091', 9091],
  ])('allows gateways to reach Prometheus at %s', async (url, port) => {
    const egressOf = async (settings: object): Promise<readonly unknown[]> => {
      const policy = ofKind(await renderValues({ settings }), 'NetworkPolicy').find((object) => at(object, 'metadata', 'name') === 'svc');
      return listAt(policy, 'spec', 'egress');
    };
    const allowed = { ports: [{ port, protocol: 'TCP' }] };
    expect(await egressOf({ SVC_PROMETHEUS_URL: url })).toContainEqual(allowed);
    expect(await egressOf({})).not.toContainEqual(allowed);
  });

  test('connects the chat UI to the gateway', async () => {
    const objects = await renderValues({
      chatUi: { enabled: true },
      service: { port: 8000 },
      networkPolicy: { gatewayFrom: [{ podSelector: {} }] },
    });
    const chat = ofKind(objects, 'Deployment').find((object) => at(object, 'metadata', 'name') === 'svc-chat-ui');
    expect(listAt(chat, 'spec', 'template', 'spec', 'containers', 0, 'env')).toContainEqual({
      name: 'OPENAI_API_BASE_URL',
      value: 'http://svc:8000/v1',
    });
    const policy = ofKind(objects, 'NetworkPolicy').find((object) => at(object, 'metadata', 'name') === 'svc');
    expect(at(policy, 'spec', 'ingress', 0, 'from', 1, 'podSelector', 'matchLabels')).toEqual(
      at(chat, 'spec', 'template', 'metadata', 'labels'),
    );
  });

  test('puts every object into the namespace of the release, and all names are unique', async () => {
    for (const values of Object.values(VALUE_SETS)) {
      const objects = await renderValues(values, 'three');
      const identities = objects.map((object) => `${String(object['kind'])}/${String(at(object, 'metadata', 'name'))}`);
      expect(new Set(identities).size).toBe(identities.length);
      for (const object of objects) {
        const wide = String(object['kind']).startsWith('Cluster');
        expect([object['kind'], at(object, 'metadata', 'namespace')]).toEqual([object['kind'], wide ? undefined : 'three']);
      }
    }
  });
});
