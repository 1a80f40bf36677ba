/**
 * svcctl with the service in a real cluster, through the API server's proxy. By default the chart is installed for it; SVC_TEST_NAMESPACE names a namespace
 * where the service already runs and where this suite may create and delete slots.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { startSvcctl, svcctl, type Ran, type RunOptions } from '../cli/run-svcctl.ts';
import { demoSlot, install, type Installation } from '../support/live-cluster/cluster.ts';
import { describeWithCluster, kubectl, KUBECONFIG } from '../support/require/require-cluster.ts';

const GIVEN = process.env['SVC_TEST_NAMESPACE'];
/** Clusters older than the supported ones do not serve PodDisruptionBudgets, which svcctl does not use. */
const VALUES = 'replicas: 2\npodDisruptionBudget: { enabled: false }\n';
const SLOT = demoSlot('primary', 'demo-fox');

describeWithCluster('svcctl with a service in a cluster', () => {
  let directory = '';
  let namespace = GIVEN ?? '';
  let installed: Installation | undefined;
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'svcctl-cluster-'));
    if (GIVEN !== undefined) return;
    installed = await install({ namespace: 'svc-svcctl', values: VALUES });
    ({ namespace } = installed);
  }, 240_000);
  afterAll(async () => {
    await rm(directory, { recursive: true, force: true });
    await installed?.dispose();
  }, 240_000);

  const run = async (args: readonly string[], options: RunOptions = {}): Promise<Ran> => svcctl([...args, '-n', namespace], options);
  const kube = async (...args: readonly string[]): Promise<string> => kubectl(['--namespace', namespace, ...args]);

  test('finds no problem in the installation', async () => {
    const { code, out } = await run(['doctor', '-o', 'json']);
    const checks: { name: string; result: string; found: string }[] = JSON.parse(out).checks;
    expect(checks.filter(({ result }) => result === 'fail')).toEqual([]);
    expect(checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['definition', 'rights', 'service', 'replicas', 'answer', 'images']),
    );
    expect(code).toBe(0);
  }, 60_000);

  /** The status that svcctl received from the leader is written to the resource a moment later. */
  const becomes = async (jsonpath: string, wanted: string): Promise<void> => {
    const deadline = Date.now() + 30_000;
    const read = async () => kube('get', 'slot', 'primary', '--output', `jsonpath=${jsonpath}`);
    let seen = await read();
    while (seen !== wanted && Date.now() < deadline) seen = await read();
    expect(seen).toBe(wanted);
  };

  test('plans, applies and waits for a slot, which kubectl shows too', async () => {
    expect(await run(['plan', '-f', '-'], { input: SLOT })).toMatchObject({ code: 2 });
    expect(await run(['diff', '-f', '-'], { input: SLOT })).toMatchObject({ code: 2, out: expect.stringContaining('slot/primary (new)') });
    expect(await run(['apply', '-f', '-'], { input: SLOT })).toMatchObject({ code: 0, out: 'slot/primary created\n' });
    expect(await run(['wait', 'slot/primary', '--for', 'condition=Ready', '--timeout', '3m'])).toMatchObject({ code: 0 });
    await becomes('{.status.state}', 'ready');
    const generation = async (): Promise<string> => kube('get', 'slot', 'primary', '--output', 'jsonpath={.metadata.generation}');
    const before = await generation();
    expect(await run(['apply', '-f', '-'], { input: SLOT })).toMatchObject({ code: 0 });
    expect(await generation()).toBe(before);
    expect(await run(['diff', '-f', '-'], { input: SLOT })).toEqual({ code: 0, out: '', err: '' });
    expect(await run(['plan'])).toMatchObject({ code: 0 });
  }, 240_000);

  test('shows, explains and lists the timeline', async () => {
    const slots = await run(['get', 'slots', '-o', 'wide']);
    expect(slots.out).toMatch(/^primary +ready +yes +yes +demo-fox +gguf +cpu /m);
    expect(await run(['explain', 'primary'])).toMatchObject({ code: 0, out: expect.stringContaining('is ready') });
    expect(await run(['timeline', 'primary'])).toMatchObject({ code: 0, out: expect.stringContaining('to "ready"') });
  }, 60_000);

  test('follows the log of a slot’s pod, through the API server', async () => {
    const child = startSvcctl(['slot', 'logs', 'primary', '--follow', '-n', namespace]);
    const ended = new Promise((resolve) => child.once('close', resolve));
    await new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()));
    child.kill('SIGTERM');
    await ended;
  }, 60_000);

  test('changes a model, and unloads, loads and restarts', async () => {
    expect(await run(['slot', 'load', 'primary', '--model', 'demo-owl', '--wait', '--timeout', '3m'])).toMatchObject({ code: 0 });
    await becomes('{.spec.model.default} {.status.model}', 'demo-owl demo-owl');
    expect(await run(['slot', 'restart', 'primary', '--wait', '--timeout', '3m'])).toMatchObject({ code: 0 });
    expect(await run(['slot', 'unload', 'primary', '--wait', '--timeout', '3m'])).toMatchObject({ code: 0 });
    await becomes('{.spec.enabled} {.status.state}', 'false offline');
    expect(await run(['slot', 'load', 'primary', '--wait', '--timeout', '3m'])).toMatchObject({ code: 0 });
  }, 600_000);

  test('reports which file is missing in a pod', async () => {
    const created = await run(['slot', 'create', 'lost', '--model', 'own/lost.gguf', '--provider', 'gguf', '--backend', 'cpu']);
    expect(created).toMatchObject({ code: 0 });
    const deadline = Date.now() + 90_000;
    let out = '';
    while (!out.includes('put it into the model store') && Date.now() < deadline)
      ({ out } = await run(['get', 'slots', 'lost', '-o', 'json']));
    expect(out).toContain('put it into the model store');
    expect(await run(['slot', 'delete', 'lost', '--wait'])).toMatchObject({ code: 0 });
  }, 180_000);

  test('works after the leader is gone', async () => {
    const leader = await kube('get', 'lease', 'svc-controller', '--output', 'jsonpath={.spec.holderIdentity}');
    await kube('delete', 'pod', leader, '--wait=false');
    const listed = await run(['get', 'slots']);
    expect(listed).toMatchObject({ code: 0, out: expect.stringContaining('primary') });
    await kube('wait', '--for=delete', `pod/${leader}`, '--timeout=60s');
    expect(await run(['get', 'slots'])).toMatchObject({ code: 0, out: expect.stringContaining('primary') });
    expect(await kube('get', 'lease', 'svc-controller', '--output', 'jsonpath={.spec.holderIdentity}')).not.toBe(leader);
  }, 180_000);

  test('reads the output of kubectl, and writes input for kubectl', async () => {
    const yaml = await kube('get', 'slots', '--output', 'yaml');
    const clean = await svcctl(['convert', '-f', '-', '--to', 'crd'], { input: yaml });
    expect({ code: clean.code, err: clean.err }).toEqual({ code: 0, err: '' });
    for (const document of parseAllDocuments(clean.out)) expect(document.has('status')).toBe(false);
    expect(await run(['diff', '-f', '-'], { input: clean.out })).toEqual({ code: 0, out: '', err: '' });
    const tricky = '[model]\ndefault = "demo-fox"\n\n[env]\nA = "on"\nB = "12:30:45"\nC = "0o17"\nD = "~"\nyes = "1_000"\n';
    const file = path.join(directory, 'primary.toml');
    await writeFile(file, tricky);
    const converted = await svcctl(['convert', '-f', file, '--to', 'crd']);
    const dry = ['--namespace', namespace, 'create', '--dry-run=client', '--validate=false', '--output', 'json', '--filename', '-'];
    expect(JSON.parse(await kubectl(dry, converted.out)).spec.env).toEqual({ A: 'on', B: '12:30:45', C: '0o17', D: '~', yes: '1_000' });
  }, 60_000);

  test('names the missing permission, and works when it is granted', async () => {
    const kubeconfig = await kubeconfigAs('svcctl-test-reader');
    const asReader = async (...args: readonly string[]): Promise<Ran> => run([...args, '--kubeconfig', kubeconfig]);
    expect(await asReader('get', 'slots')).toMatchObject({ code: 1, err: expect.stringContaining('"get" "leases"') });
    await kube('create', 'role', 'svcctl-test-reader', '--verb=get', '--resource=leases.coordination.k8s.io,pods/proxy');
    await kube('create', 'rolebinding', 'svcctl-test-reader', '--role=svcctl-test-reader', '--user=svcctl-test-reader');
    try {
      expect(await asReader('get', 'slots')).toMatchObject({ code: 0, out: expect.stringContaining('primary') });
      expect(await asReader('slot', 'unload', 'primary')).toMatchObject({ code: 1, err: expect.stringContaining('"create" "pods/proxy"') });
      expect(await asReader('doctor')).toMatchObject({ out: expect.stringContaining('svcctl can read but not change slots') });
    } finally {
      await kube('delete', 'role,rolebinding', 'svcctl-test-reader');
    }
  }, 60_000);

  test('deletes a slot and all its objects', async () => {
    expect(await run(['slot', 'delete', 'primary', '--wait', '--timeout', '3m'])).toMatchObject({ code: 0, out: 'slot/primary deleted\n' });
    expect(await kube('get', 'slot', 'primary', '--ignore-not-found')).toBe('');
    await kube('wait', '--for=delete', 'deployments,pods', '--selector', 'inference.svc.dev/slot=primary', '--timeout=120s');
  }, 240_000);

  test('explains how to install the service if there is none', async () => {
    expect(await svcctl(['get', 'slots', '-n', 'default'])).toMatchObject({ code: 1, err: expect.stringContaining('helm install svc') });
  }, 30_000);

  /** The cluster's kubeconfig, impersonating a user without any permissions. */
  async function kubeconfigAs(user: string): Promise<string> {
    const config: { users: { user: Record<string, unknown> }[] } = JSON.parse(
      await kubectl(['--kubeconfig', KUBECONFIG, 'config', 'view', '--raw', '--minify', '--output', 'json']),
    );
    for (const entry of config.users) entry.user['as'] = user;
    const file = path.join(directory, `${user}.kubeconfig`);
    await writeFile(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }
});
