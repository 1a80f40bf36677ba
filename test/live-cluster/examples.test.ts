/** Applies every overlay and every example of the chart to a fresh namespace, with the images of the tests in the place of those that readers put in. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { at } from '../helm/rendered.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { describeWithCluster, kubectl } from '../support/require/require-cluster.ts';

type Json = Readonly<Record<string, unknown>>;

const run = promisify(execFile);
const TOP = join(import.meta.dirname, '../..');
const EXAMPLES = (await readdir(join(TOP, 'helm/svc/examples'))).map((file) => `helm/svc/examples/${file}`);
const OVERLAYS = (await readdir(join(TOP, 'manifests/overlays'))).map((folder) => `manifests/overlays/${folder}`);
const IMAGE = process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test';
const DIGEST = /(image = "localhost\/svc-toolbox-gguf-cpu:v1")\s+digest = "sha256:0+"/g;
/** What the comments of the examples tell readers to have: a claim with models, a Secret of the proxy, volumes of the storage class. */
const PREREQUISITES = (namespace: string) => `
apiVersion: v1
kind: Secret
metadata: { name: svc-proxy }
stringData: { secret: "0123456789abcdef0123456789abcdef" }
${['models', 'svc-models']
  .map(
    (claim) => `---
apiVersion: v1
kind: PersistentVolume
metadata: { name: ${namespace}-${claim} }
spec:
  capacity: { storage: 500Gi }
  accessModes: [ReadWriteMany, ReadWriteOnce]
  storageClassName: ${claim === 'models' ? 'none' : 'shared'}
  hostPath: { path: /var/tmp/svc-test-models, type: DirectoryOrCreate }
  claimRef: { namespace: ${namespace}, name: ${claim} }
`,
  )
  .join('')}---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: models }
spec: { accessModes: [ReadWriteMany], storageClassName: none, resources: { requests: { storage: 1Gi } } }
`;

async function rendered(path: string, namespace: string): Promise<string> {
  const helm = process.env['SVC_TEST_HELM'];
  const chart = ['svc', join(TOP, 'helm/svc'), '--namespace', namespace, '--values', join(TOP, path)];
  if (!path.startsWith('helm/')) return (await run('kubectl', ['kustomize', join(TOP, path)], { maxBuffer: 2 ** 24 })).stdout;
  return (await (helm === undefined ? run('helm', ['template', ...chart]) : run(helm, chart))).stdout;
}

/** Without hooks, the definition of slots, and kinds that the server does not have. */
async function objectsOf(path: string, namespace: string): Promise<readonly Json[]> {
  const served = await kubectl(['api-resources', '--no-headers']);
  const kinds = new Set(served.split('\n').map((line) => line.trim().split(/\s+/).at(-1)));
  const versions = new Set((await kubectl(['api-versions'])).split('\n'));
  const text = (await rendered(path, namespace))
    .replaceAll(/(?:registry\.example|localhost)\/svc:[\w.]+/g, IMAGE)
    .replaceAll(/registry\.example\/svc-toolbox-gguf-\w+:v1/g, 'localhost/svc-toolbox-gguf-cpu:v1')
    .replaceAll(DIGEST, '$1')
    .replaceAll(/namespace: svc$/gm, `namespace: ${namespace}`);
  return parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(isTable)
    .filter((object) => kinds.has(String(object['kind'])) && versions.has(String(object['apiVersion'])))
    .filter(
      (object) => object['kind'] !== 'CustomResourceDefinition' && at(object, 'metadata', 'annotations', 'helm.sh/hook') === undefined,
    );
}

describeWithCluster('Every example and overlay', () => {
  const namespaces: string[] = [];
  afterAll(async () => {
    await kubectl(['delete', 'namespace', ...namespaces, '--ignore-not-found', '--timeout=280s']);
    const volumes = namespaces.flatMap((namespace) => [`${namespace}-models`, `${namespace}-svc-models`]);
    await kubectl(['delete', 'persistentvolume', ...volumes, '--ignore-not-found']);
  }, 300_000);

  test.each([...EXAMPLES, ...OVERLAYS])(
    'comes up from a fresh namespace: %s',
    async (path) => {
      const namespace = `${path.replace(/^.*(examples|overlays)/, '$1').replaceAll(/[^a-z]+/g, '-')}-${process.pid}`;
      namespaces.push(namespace);
      await kubectl(['create', 'namespace', namespace]);
      const inNamespace = async (args: readonly string[], input?: string) => kubectl(['--namespace', namespace, ...args], input);
      await inNamespace(['apply', '--filename', '-'], PREREQUISITES(namespace));
      const objects = await objectsOf(path, namespace);
      const list = { apiVersion: 'v1', kind: 'List', items: objects };
      await inNamespace(['apply', '--validate=false', '--filename', '-'], JSON.stringify(list));
      await inNamespace(['rollout', 'status', 'deployment/svc', '--timeout=120s']);
      const slots = objects.filter(({ kind }) => kind === 'SlotSpec');
      for (const slot of slots) {
        const name = `slot/${String(at(slot, 'metadata', 'name'))}`;
        if (at(slot, 'spec', 'resources', 'gpus') === undefined) {
          await inNamespace(['wait', '--for=condition=UpToDate', name, '--timeout=120s']);
          continue;
        }
        await inNamespace(['wait', '--for=jsonpath={.status.summary.reason}=Unschedulable', name, '--timeout=60s']);
        const message = await inNamespace(['get', name, '--output', 'jsonpath={.status.summary.message}']);
        expect(message).toMatch(/^No node fits the pod: no free "(?:nvidia|amd)\.com\/gpu" \(1 requested\)/);
      }
      expect(slots.length > 0).toBe(/cpu|nvidia|amd/.test(path));
      // Ends while the next one starts.
      await kubectl(['delete', 'namespace', namespace, '--wait=false']);
    },
    300_000,
  );
});
