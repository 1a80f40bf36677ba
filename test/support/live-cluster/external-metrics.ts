/** Gives a cluster the API group external.metrics.k8s.io, which real autoscalers read, with the metrics of an installation's gateways behind it. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { kubectl } from '../require/require-cluster.ts';
import type { Installation } from './cluster.ts';
import { gatewaysOf } from './cluster-replicas.ts';

const execute = promisify(execFile);

const NAME = 'external-metrics';
const API_SERVICE = 'v1beta1.external.metrics.k8s.io';
/** On the APIService, so that one that an aborted run left behind can be told from one that belongs to the cluster. */
const MARK = 'svc-test';
const RIGHT = 'svc-test-external-metrics';
/** A server of external metrics also lets autoscalers read them, as prometheus-adapter and KEDA do. */
const RIGHTS = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: RIGHT },
    rules: [{ apiGroups: ['external.metrics.k8s.io'], resources: ['*'], verbs: ['get', 'list'] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: RIGHT },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: RIGHT },
    subjects: [{ kind: 'ServiceAccount', name: 'horizontal-pod-autoscaler', namespace: 'kube-system' }],
  },
];
const PROGRAM = join(import.meta.dirname, 'external-metrics-server.mjs');

/** Returns a function that removes the group again: while its server is gone, the cluster cannot delete namespaces. */
export async function serveExternalMetrics(svc: Installation): Promise<() => Promise<void>> {
  await removeLeftover();
  const { certificate, key } = await selfSigned(`${NAME}.${svc.namespace}.svc`);
  const gateways = (await gatewaysOf(svc)).map(({ url }) => url);
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: NAME }, data: { 'server.mjs': await readFile(PROGRAM, 'utf8') } },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: NAME },
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': certificate, 'tls.key': key },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME },
      spec: { selector: { app: NAME }, ports: [{ port: 443, targetPort: 8443 }] },
    },
    podOf(gateways),
  ];
  await svc.kubectl(['apply', '--filename', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  await svc.kubectl(['wait', '--for=condition=Ready', `pod/${NAME}`, '--timeout=60s']);
  const items = [apiService(svc.namespace, certificate), ...RIGHTS];
  await kubectl(['create', '--filename', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await kubectl(['wait', '--for=condition=Available', `apiservice/${API_SERVICE}`, '--timeout=60s']);
  return removeLeftover;
}

async function removeLeftover(): Promise<void> {
  const labels = await kubectl(['get', 'apiservice', API_SERVICE, '--ignore-not-found', '--output', 'jsonpath={.metadata.labels}']);
  if (labels !== '' && !labels.includes(MARK))
    throw new Error(`Use a cluster without external metrics: "${API_SERVICE}" is served already`);
  await kubectl(['delete', 'apiservice', API_SERVICE, '--ignore-not-found']);
  await kubectl(['delete', 'clusterrole,clusterrolebinding', RIGHT, '--ignore-not-found']);
}

function podOf(gateways: readonly string[]): object {
  const container = {
    name: 'server',
    image: process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test',
    imagePullPolicy: 'IfNotPresent',
    command: ['node', '/program/server.mjs'],
    env: [{ name: 'GATEWAYS', value: gateways.join(',') }],
    readinessProbe: { tcpSocket: { port: 8443 }, periodSeconds: 1 },
    volumeMounts: [
      { name: 'program', mountPath: '/program' },
      { name: 'tls', mountPath: '/tls' },
    ],
  };
  const volumes = [
    { name: 'program', configMap: { name: NAME } },
    { name: 'tls', secret: { secretName: NAME } },
  ];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: NAME, labels: { app: NAME } },
    spec: { terminationGracePeriodSeconds: 1, containers: [container], volumes },
  };
}

function apiService(namespace: string, certificate: string): object {
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: API_SERVICE, labels: { 'app.kubernetes.io/part-of': MARK } },
    spec: {
      group: 'external.metrics.k8s.io',
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { name: NAME, namespace, port: 443 },
      caBundle: Buffer.from(certificate).toString('base64'),
    },
  };
}

async function selfSigned(host: string): Promise<{ readonly certificate: string; readonly key: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-tls-'));
  try {
    const [key, certificate] = [join(directory, 'tls.key'), join(directory, 'tls.crt')];
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', `/CN=${host}`];
    await execute('openssl', [...request, '-addext', `subjectAltName=DNS:${host}`, '-keyout', key, '-out', certificate]);
    return { certificate: await readFile(certificate, 'utf8'), key: await readFile(key, 'utf8') };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
