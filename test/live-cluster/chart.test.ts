/** Checks the chart on a real API server: each set of values is rendered and applied with `--dry-run=server`, and one is installed and tested. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { at } from '../helm/rendered.ts';
import { renderValues, VALUE_SETS } from '../helm/value-sets.ts';
import { demoSlot, install, renderTest, type Installation } from '../support/live-cluster/cluster.ts';
import { schemaProblem } from '../support/kube/published-schemas.ts';
import { describeWithCluster, kubectl } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';

type Json = Readonly<Record<string, unknown>>;

const NAMESPACE = `svc-chart-${process.pid}`;

/** Each question to the API server takes most of a second of a core, and most objects of the sets are the same. */
const asked = new Map<string, Promise<string | undefined>>();
function askOnce(question: string, ask: () => Promise<string | undefined>): Promise<string | undefined> {
  const answer = asked.get(question) ?? ask();
  asked.set(question, answer);
  return answer;
}

/** Whether this API server serves the kind at all. */
async function isServed({ apiVersion, kind }: Json): Promise<boolean> {
  const groupVersion = String(apiVersion);
  const path = groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`;
  const listed = await askOnce(path, async () => kubectl(['get', '--raw', path]).catch(() => '{}'));
  const { resources = [] }: { readonly resources?: readonly { readonly kind: string }[] } = JSON.parse(listed ?? '{}');
  return resources.some((resource) => resource.kind === kind);
}

/** An old server does not know all kinds and fields, and a bare one lacks the kinds of add-ons: the published schemas check these objects. */
const NOT_KNOWN = 'The server does not know this kind, or a field of it';

/** Fields that servers before 1.24 reject. */
const NEWER_FIELDS = /unknown field "loadBalancerClass"/;

async function rejection(object: Json): Promise<string | undefined> {
  if (!(await isServed(object))) return NOT_KNOWN;
  const text = JSON.stringify(object);
  return askOnce(text, async () =>
    kubectl(['--namespace', NAMESPACE, 'apply', '--dry-run=server', '--filename', '-'], text).then(
      () => undefined,
      (error: Error) => (NEWER_FIELDS.test(error.message) ? NOT_KNOWN : error.message),
    ),
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
      const checkedElsewhere: string[] = [];
      for (const object of await renderValues(values, NAMESPACE)) {
        const kind = String(object['kind']);
        const problem = await rejection(object);
        if (problem !== NOT_KNOWN) expect([kind, problem]).toEqual([kind, undefined]);
        else {
          checkedElsewhere.push(kind);
          expect([kind, schemaProblem(object)]).toEqual([kind, undefined]);
        }
      }
      expect(['HTTPRoute', 'PodDisruptionBudget', 'PrometheusRule', 'Service', 'ServiceMonitor']).toEqual(
        expect.arrayContaining([...new Set(checkedElsewhere)]),
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

/** As on OpenShift, which assigns users that no image knows; with all that can be added to a gateway. */
const ADAPTED = `
replicas: 1
commonLabels: { example.com/cost-center: ml }
commonAnnotations: { example.com/owner: platform }
podSecurityContext: { runAsUser: 1000650000, runAsGroup: 0, fsGroup: null }
extraEnv: [{ name: NODE_EXTRA_CA_CERTS, value: /etc/private-ca/ca.crt }]
extraEnvFrom: [{ configMapRef: { name: private-ca }, prefix: CA_ }]
extraVolumes: [{ name: private-ca, configMap: { name: private-ca, optional: true } }]
extraVolumeMounts: [{ name: private-ca, mountPath: /etc/private-ca, readOnly: true }]
topologySpreadConstraints: [{ maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule }]
deploymentStrategy: { type: Recreate }
revisionHistoryLimit: 1
service: { type: NodePort, externalTrafficPolicy: Local }
networkPolicy: { gatewayFrom: [{ ipBlock: { cidr: 0.0.0.0/0 } }] }
`;

describeWithCluster('A release with adapted pods', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({
      namespace: `svc-chart-adapted-${process.pid}`,
      values: ADAPTED,
      before: async (kubectl) => void (await kubectl(['create', 'configmap', 'private-ca', '--from-literal=name=value'])),
    });
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  test('runs as a user that its image does not know, with what was added to it', async () => {
    const [gateway = ''] = await svc.gateways();
    const seen = await svc.kubectl(['exec', gateway, '--', 'node', '--print', 'JSON.stringify([process.getuid(), process.env.CA_name])']);
    expect(JSON.parse(seen)).toEqual([1_000_650_000, 'value']);
    const labelled = await svc.kubectl(['get', 'pods', '--selector', 'example.com/cost-center=ml', '--output', 'name']);
    expect(labelled).toContain(gateway);
  }, 60_000);

  test('passes the pod of "helm test", which fails against a gateway that is not there', async () => {
    await svc.apply(demoSlot('primary', 'demo-fox'));
    await svc.kubectl(['wait', '--for=condition=UpToDate', 'slot/primary', '--timeout=120s']);
    // Clusters of the tests may have no DNS, so the pod gets the name of the Service from its own hosts file.
    const address = await svc.kubectl(['get', 'service', 'svc', '--output', 'jsonpath={.spec.clusterIP}']);
    const pod: Json = parse(await renderTest(svc.namespace, ADAPTED));
    expect(await outcomeOf(pod, address)).toEqual(['Succeeded', 'The gateway is ready\nThe gateway lists 1 models\n']);
    await svc.kubectl(['scale', 'deployment/svc', '--replicas=0']);
    const [phase, log] = await outcomeOf(pod, address, '2000');
    expect([phase, log]).toEqual(['Failed', expect.stringContaining('Look at the pods of the gateway')]);
  }, 300_000);

  /** Runs the pod like `helm test` until it ends; returns its phase and what it printed. */
  async function outcomeOf(pod: Json, address: string, patienceMs = '60000'): Promise<readonly [phase: string, log: string]> {
    const adapted = structuredClone(pod);
    Object.assign(Object(adapted['spec']), { hostAliases: [{ ip: address, hostnames: ['svc'] }] });
    Object.assign(Object(at(adapted, 'spec', 'containers', 0, 'env')), { 1: { name: 'PATIENCE_MS', value: patienceMs } });
    await svc.kubectl(['delete', 'pod', 'svc-test', '--ignore-not-found', '--timeout=60s']);
    await svc.kubectl(['apply', '--filename', '-'], JSON.stringify(adapted));
    const phase = async () => svc.kubectl(['get', 'pod', 'svc-test', '--output', 'jsonpath={.status.phase}']);
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(200)) {
      if (['Succeeded', 'Failed'].includes(await phase())) break;
    }
    return [await phase(), await svc.kubectl(['logs', 'pod/svc-test'])];
  }
});
