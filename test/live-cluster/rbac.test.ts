/**
 * Least privilege: the service runs with the rights of the chart's own service account and exercises all its features. Its requests to the API server must
 * match what the chart grants: nothing is forbidden, and without any one of the rights a request would have been forbidden.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isTable } from '../../src/schema/words/key-case.ts';
import { renderValues } from '../helm/value-sets.ts';
import { freePort } from '../support/free-port.ts';
import { startKubeRecorder, type KubeRecorder } from '../support/live-cluster/kube-recorder.ts';
import { describeWithCluster, kubectl } from '../support/require/require-cluster.ts';
import { ownEnvironment, pause } from '../support/service.ts';

type Json = Readonly<Record<string, unknown>>;

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

const NAMESPACE = `svc-rbac-${process.pid}`;
const inNamespace = async (args: readonly string[], input?: string) => kubectl(['--namespace', NAMESPACE, ...args], input);
/** Without DRA, which not every cluster serves. */
const VALUES = { gpus: { allocation: 'device-plugin' }, auth: { enabled: true }, rbac: { migrateVersions: true } };
/** Everything that values can switch off. */
const FEW = {
  gpus: VALUES.gpus,
  rbac: { editSlots: false, readLogs: false, createClaims: false },
  settings: { SVC_DISRUPTION_BUDGETS: false },
};
const PRIMARY = 'inference.svc.dev/slot=primary';
const RIGHTS = new Set(['ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding', 'Secret']);
const DEFINITION = 'customresourcedefinitions.apiextensions.k8s.io';

const grantedBy = ({ apiGroups, resources, verbs }: Rule): readonly string[] =>
  apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)));

describeWithCluster('The chart’s service account', () => {
  let recorder: KubeRecorder;
  let child: ChildProcess;
  let directory: string;
  let url: string;
  let role: Json;
  let rules: readonly Rule[];
  let output = '';
  let token = '';
  let port: number;

  const call = async (method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${url}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify({ spec: body }) }),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    });
  const change = async (method: string, path: string, body?: object): Promise<void> => {
    const answer = await call(method, path, body);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}\n${output.slice(-3000)}`);
  };
  const until = async (what: string, holds: () => Promise<boolean> | boolean, timeoutMs = 60_000): Promise<void> => {
    const deadline = Date.now() + timeoutMs;
    while (!(await holds())) {
      if (Date.now() > deadline)
        throw new Error(`Timed out waiting for ${what}; used: ${[...recorder.used].toSorted().join(', ')}\n${output.slice(-3000)}`);
      await pause(200);
    }
  };
  const isUsed = (right: string) => () => recorder.used.has(right);

  beforeAll(async () => {
    await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=120s']);
    await kubectl(['create', 'namespace', NAMESPACE]);
    const objects = (await renderValues(VALUES, NAMESPACE)).filter(({ kind }) => RIGHTS.has(String(kind)));
    for (const object of objects) await inNamespace(['apply', '--filename', '-'], JSON.stringify(object));
    role = objects.find(({ kind }) => kind === 'Role') ?? {};
    rules = JSON.parse(JSON.stringify(role['rules']));
    recorder = await startKubeRecorder(NAMESPACE, 'svc');
    directory = await mkdtemp(join(tmpdir(), 'svc-rbac-'));
    await mkdir(join(directory, 'config'));
    await writeFile(join(directory, 'kubeconfig'), recorder.kubeconfig);
    await writeFile(join(directory, 'config/toolboxes.toml'), '[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\n');
    port = await freePort();
    url = `http://127.0.0.1:${port}`;
    await serve({ SVC_AUTH_ENABLED: '1', SVC_REVISION_HISTORY: '1' });
  }, 240_000);

  async function serve(environment: Readonly<Record<string, string>>): Promise<void> {
    child = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve'], {
      env: {
        ...ownEnvironment(),
        KUBECONFIG: join(directory, 'kubeconfig'),
        SVC_RUNTIME: 'kube',
        SVC_LISTEN: `127.0.0.1:${port}`,
        SVC_CONFIG_DIR: join(directory, 'config'),
        SVC_STATE_DIR: join(directory, 'state'),
        SVC_POD_NAME: 'gateway-of-the-test',
        SVC_IMAGE: process.env['SVC_TEST_IMAGE'] ?? 'localhost/svc:test',
        SVC_GPU_ALLOCATION: 'device-plugin',
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await until('the service', async () =>
      call('GET', '/api/health/system').then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  }

  afterAll(async () => {
    child.kill('SIGKILL');
    await recorder.close();
    await kubectl(['delete', 'clusterrole,clusterrolebinding', `svc-${NAMESPACE}-definition`, '--ignore-not-found']);
    await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=180s']);
    await rm(directory, { recursive: true, force: true });
  }, 240_000);

  /** With kubectl, because the management API does not accept every key. */
  const createSlot = async (name: string, storage: Json) =>
    create('inference.svc.dev/v1alpha1', 'SlotSpec', name, { provider: 'gguf', backend: 'cpu', model: { default: 'demo-fox' }, storage });
  const create = async (apiVersion: string, kind: string, name: string, spec: Json) =>
    inNamespace(['create', '--filename', '-'], JSON.stringify({ apiVersion, kind, metadata: { name }, spec }));
  const deployment = async (slot: string, jsonPath: string) =>
    inNamespace(['get', 'deployments', '--selector', `inference.svc.dev/slot=${slot}`, '--output', `jsonpath={.items[*]${jsonPath}}`]);
  const replicas = async (field: string) =>
    inNamespace(['get', 'pods', '--selector', PRIMARY, '--output', `jsonpath={.items[*].status.containerStatuses[0].${field}}`]);
  const readySlot = async (slot: string): Promise<boolean> =>
    (await inNamespace(['get', 'slotspec', slot, '--output', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'])) === 'True';

  test('has enough rights for all features', async () => {
    await until('leadership', isUsed('list inference.svc.dev/slotspecs'));
    // A token in the Secret of the chart, which is empty at first; another Secret is not for the service.
    await until('the watch of the tokens', isUsed('watch /secrets'));
    // The first one, with the rights of the administrator.
    const first = spawnSync(
      process.execPath,
      ['src/cli/svcctl.mjs', '--namespace', NAMESPACE, 'token', 'create', '--label', 'first', '--scope', 'admin'],
      {
        encoding: 'utf8',
        env: { ...ownEnvironment(), KUBECONFIG: process.env['KUBECONFIG'] ?? '' },
      },
    );
    token = /svc_[0-9a-f]{8}\.\S+/.exec(first.stdout)?.[0] ?? `none: ${first.stderr}`;
    await until('the token to count', async () => (await call('GET', '/api/auth/tokens')).status === 200);
    const created = await fetch(`${url}/api/auth/tokens`, {
      method: 'POST',
      body: JSON.stringify({ label: 'rights', scope: 'read-only' }),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    });
    expect([created.status, await created.text()]).toEqual([200, expect.stringContaining('"scope":"read-only"')]);
    const stored = await inNamespace(['get', 'secret', 'svc-tokens', '--output', 'jsonpath={.data.tokens\\.toml}']);
    expect(Buffer.from(stored, 'base64').toString()).toContain('label = "rights"');
    const may = async (...args: readonly string[]): Promise<string> => {
      const mine = `--as=system:serviceaccount:${NAMESPACE}:svc`;
      const answer = await inNamespace(['auth', 'can-i', ...args, mine]).catch((error: { readonly stdout?: string }) => error.stdout ?? '');
      return answer.trim();
    };
    expect(await may('get', 'secrets/another')).toBe('no');
    // The leader looks whether its definition has been upgraded. No other definition and no slot of another namespace is for it.
    await until('the definition to be read', isUsed('get apiextensions.k8s.io/customresourcedefinitions'));
    expect(await may('patch', `${DEFINITION}/slotspecs.inference.svc.dev`, '--subresource=status')).toBe('yes');
    expect(await may('patch', `${DEFINITION}/slotspecs.inference.svc.dev`)).toBe('no');
    expect(await may('patch', `${DEFINITION}/another.example.com`, '--subresource=status')).toBe('no');
    expect(await may('list', 'slotspecs.inference.svc.dev', '--all-namespaces')).toBe('yes');
    expect(await may('patch', 'slotspecs.inference.svc.dev', '--subresource=status', '--all-namespaces')).toBe('no');
    // A slot created through the management API, and its workload.
    await change('PUT', '/api/slots/primary', { backend: 'cpu', model: { default: 'demo-fox', args: ['--threads', '1'] } });
    await until('the slot to answer', async () => readySlot('primary'), 120_000);
    await change('GET', '/api/slots/primary/logs?tail=5');
    // A foreign Service that replaces ours while the service is paused, and that cannot be updated into ours.
    const service: unknown = JSON.parse(await inNamespace(['get', 'service', 'svc-slot-primary', '--output', 'json']));
    const metadata = isTable(service) && isTable(service['metadata']) ? service['metadata'] : {};
    const { name, labels, ownerReferences } = metadata;
    const replacement = { apiVersion: 'v1', kind: 'Service', metadata: { name, labels, ownerReferences }, spec: { ports: [{ port: 9 }] } };
    child.kill('SIGSTOP');
    await inNamespace(['delete', 'service', 'svc-slot-primary']);
    await inNamespace(['create', '--filename', '-'], JSON.stringify(replacement));
    child.kill('SIGCONT');
    // Two replicas, one of which crashes until its restart is delayed; a repair then replaces it.
    await change('PATCH', '/api/slots/primary', { replicas: 2 });
    await until('two replicas', async () => (await replicas('ready')) === 'true true', 120_000);
    const [pod = ''] = (await inNamespace(['get', 'pods', '--selector', PRIMARY, '--output', 'jsonpath={.items[*].metadata.name}'])).split(
      ' ',
    );
    const waits = async () => /waiting/.test(await replicas('state'));
    // The kubelet restarts it after a delay, and a repair that comes later has nothing to replace, so that both are repeated until they meet.
    await until(
      'the crashed replica to be removed',
      async () => {
        // Fails while the container is down. The delay grows with each restart, so that the waiting state is seen in the end.
        if (!(await waits())) await inNamespace(['exec', pod, '--', '/bin/sh', '-c', 'kill -TERM 1']).catch(() => '');
        if (await waits())
          await inNamespace(['patch', 'service', 'svc-slot-primary', '--type=merge', '--patch', '{"spec":{"selector":{"altered":"yes"}}}']);
        return recorder.used.has('delete /pods');
      },
      240_000,
    );
    // Another model: another Deployment, and a ConfigMap that is no longer used.
    await change('PATCH', '/api/slots/primary', { model: { default: 'demo-owl' } });
    await until('the old ConfigMap to be removed', isUsed('delete /configmaps'), 120_000);
    // Its history has the newest revision only.
    await change('GET', '/api/slots/primary/revisions');
    await until('the oldest revision to be removed', isUsed('delete apps/controllerrevisions'));
    // A claim of its own; it need not be bound.
    await createSlot('claiming', { size: '1Gi' });
    await until('a claim', isUsed('create /persistentvolumeclaims'));
    // Its pod waits for a directory that is actually a file.
    await createSlot('misplaced', { hostPath: '/etc/hostname' });
    await until('the reason why it does not start', isUsed('list /events'));
    await change('DELETE', '/api/slots/misplaced');
    const template = { metadata: { labels: { app: 'other' } }, spec: { containers: [{ name: 'other', image: 'localhost/pause:3.2' }] } };
    await create('apps/v1', 'Deployment', 'svc-slot-taken', { selector: { matchLabels: template.metadata.labels }, template });
    await createSlot('taken', {});
    await until('the Deployment of somebody else to be looked at', isUsed('get apps/deployments'));
    await change('DELETE', '/api/slots/taken');
    // A server that exits immediately each time.
    const hopeless = { default: 'demo-fox', args: ['--threads', 'many'] };
    await change('PUT', '/api/slots/crashing', { provider: 'gguf', backend: 'cpu', model: hopeless });
    await until('an event to be counted again', isUsed('patch /events'), 120_000);
    await change('DELETE', '/api/slots/crashing');
    await until('the end of the workload', async () => (await deployment('crashing', '.metadata.name')) === '');
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
    expect([...recorder.refused]).toEqual([]);
  }, 480_000);

  test('has no unused right', () => {
    const granted = rules.flatMap(grantedBy);
    expect(granted.filter((right) => !recorder.used.has(right))).toEqual([]);
    expect(granted.length).toBeGreaterThan(30);
  });

  test('has each right from one rule only: without that rule, requests of the service would be forbidden', async () => {
    // It grants the list of all namespaces, hence that of each.
    await kubectl(['delete', 'clusterrolebinding', `svc-${NAMESPACE}-definition`]);
    const as = `--as=system:serviceaccount:${NAMESPACE}:svc`;
    for (const [index, rule] of rules.entries()) {
      await inNamespace(['apply', '--filename', '-'], JSON.stringify({ ...role, rules: rules.filter((_each, other) => other !== index) }));
      for (const right of grantedBy(rule).filter((each) => recorder.used.has(each))) {
        const [verb = '', path = ''] = right.split(' ');
        const [group, plural = '', subresource] = path.split('/');
        const of = subresource === undefined ? [] : [`--subresource=${subresource}`];
        const named = rule.resourceNames === undefined ? '' : `/${rule.resourceNames.join('')}`;
        const answer = await inNamespace([
          'auth',
          'can-i',
          verb,
          `${group === '' ? plural : `${plural}.${group}`}${named}`,
          ...of,
          as,
        ]).catch((error: { readonly stdout?: string }) => error.stdout ?? '');
        expect([right, answer.trim()]).toEqual([right, 'no']);
      }
    }
    await inNamespace(['apply', '--filename', '-'], JSON.stringify(role));
  }, 240_000);

  test('is enough without what the values switch off, and answers management on its own port only', async () => {
    const [few] = (await renderValues(FEW, NAMESPACE)).filter(({ kind }) => kind === 'Role');
    await inNamespace(['apply', '--filename', '-'], JSON.stringify(few));
    const before = new Set(recorder.refused);
    const management = await freePort();
    await serve({ SVC_DISRUPTION_BUDGETS: '0', SVC_MANAGEMENT_LISTEN: `127.0.0.1:${management}` });
    // Without the right to read logs, the service goes on without the last lines of a server; without that to read the definition, it migrates nothing.
    const missed = new Set([...before, 'get /pods/log', 'get apiextensions.k8s.io/customresourcedefinitions']);
    const refused = () => [...recorder.refused].filter((right) => !missed.has(right));
    await createSlot('plain', {});
    await until('the slot to answer', async () => readySlot('plain'), 120_000);
    const managed = `http://127.0.0.1:${management}`;
    const statuses = await Promise.all(
      [
        `${url}/v1/models`,
        `${url}/api/health/ready`,
        `${url}/api/slots`,
        `${url}/api/metrics`,
        `${managed}/api/slots`,
        `${managed}/api/metrics`,
      ].map(async (each) => (await fetch(each)).status),
    );
    expect(statuses).toEqual([200, 200, 404, 404, 200, 200]);
    await until('the refusal to be logged', () => output.includes('SlotSpecs are not stored in a newer version'));
    expect(refused()).toEqual([]);
    const edit = await fetch(`${managed}/api/slots/plain`, {
      method: 'PATCH',
      body: JSON.stringify({ spec: { replicas: 2 } }),
      headers: { 'content-type': 'application/json' },
    });
    expect([edit.status, await edit.text()]).toEqual([expect.any(Number), expect.stringContaining('add the verb to its role')]);
    expect(edit.ok).toBe(false);
    expect(refused()).toEqual(['patch inference.svc.dev/slotspecs']);
  }, 240_000);
});
