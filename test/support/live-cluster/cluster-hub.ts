/** A Hub in the namespace of an installation: gateways and the pods of slots reach it, as they reach a mirror. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeDemoModel } from '../../../toolboxes/demo/demo-models.ts';
import type { Installation } from './cluster.ts';

const NAME = 'hub';
const PROGRAM = join(import.meta.dirname, 'hub-server.mjs');
export const HUB_TOKEN = 'hf_token-of-the-test';
const HUB_TOKEN_SECRET = 'hugging-face';

/** Starts it, and creates the Secret with its token. Returns the values of the chart for it, as YAML. Its model is `demo-owl`. */
export async function startClusterHub(kubectl: Installation['kubectl']): Promise<string> {
  const binaryData = { 'model.gguf': Buffer.from(encodeDemoModel('demo-owl')).toString('base64') };
  const items = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: NAME }, data: { 'server.mjs': await readFile(PROGRAM, 'utf8') }, binaryData },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: HUB_TOKEN_SECRET }, stringData: { HF_TOKEN: HUB_TOKEN } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: NAME }, spec: { selector: { app: NAME }, ports: [{ port: 8080 }] } },
    pod(),
  ];
  await kubectl(['create', '--filename', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await kubectl(['wait', '--for=condition=Ready', `pod/${NAME}`, '--timeout=60s']);
  const address = await kubectl(['get', 'service', NAME, '--output', 'jsonpath={.spec.clusterIP}']);
  const hub = `{ endpoint: 'http://${address}:8080', tokenSecretName: ${HUB_TOKEN_SECRET} }`;
  return `models: { hub: ${hub} }\nnetworkPolicy: { modelSources: { ports: [443, 8080] } }\n`;
}

export interface HubRequest {
  readonly path: string;
  readonly range?: string;
  readonly isAuthorized: boolean;
}

/** Returns what was asked so far. */
export async function hubRequests(kubectl: Installation['kubectl']): Promise<readonly HubRequest[]> {
  const read = "fetch('http://127.0.0.1:8080/log').then(async (answer) => console.log(await answer.text()))";
  const requests: readonly HubRequest[] = JSON.parse(await kubectl(['exec', NAME, '--', 'node', '--eval', read]));
  return requests;
}

function pod(): object {
  const container = {
    name: 'server',
    image: process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test',
    imagePullPolicy: 'IfNotPresent',
    command: ['node', '/program/server.mjs'],
    env: [{ name: 'TOKEN', value: HUB_TOKEN }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    volumeMounts: [
      { name: 'files', mountPath: '/program/server.mjs', subPath: 'server.mjs' },
      { name: 'files', mountPath: '/model/model.gguf', subPath: 'model.gguf' },
    ],
  };
  const spec = { containers: [container], volumes: [{ name: 'files', configMap: { name: NAME } }], terminationGracePeriodSeconds: 1 };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: NAME, labels: { app: NAME } }, spec };
}
