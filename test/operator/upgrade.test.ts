/**
 * An installation of a former release is upgraded to this one under load, its definition first and then its chart. SVC_TEST_FORMER is the checkout of
 * the former release, SVC_TEST_FORMER_IMAGE its image. Run it with "npm run test:long -- upgrade COMMIT".
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { crdDelete, crdInstall, describeWithClusterTool } from '../support/live-cluster/cluster-tool.ts';
import { demoSlot, install, isReady, render, type Installation } from '../support/live-cluster/cluster.ts';
import { slotPods, startClients } from '../support/live-cluster/cluster-replicas.ts';
import { kubectl } from '../support/require/require-cluster.ts';
import { pause } from '../support/service.ts';

const NAMESPACE = 'svc-upgrade';
const CRD = 'crds/slotspecs.inference.svc.dev.yaml';
const SLOTS = ['primary', 'two', 'three'];
const TOKENS = 100;
/** Passes of the new leader after all is up to date. */
const REST_MS = 30_000;
const VALUES = 'replicas: 2\npodDisruptionBudget: { enabled: false }\n';

const kindsAndNames = (manifest: string): readonly string[] =>
  parseAllDocuments(manifest).flatMap((document) => {
    const found: { kind?: string; metadata?: { name?: string } } | null = document.toJS();
    return found === null ? [] : [`${found.kind}/${found.metadata?.name}`];
  });

describeWithClusterTool('An installation of a former release', () => {
  const former = process.env['SVC_TEST_FORMER'] ?? '';
  const release = { chart: join(former, 'helm/svc'), image: process.env['SVC_TEST_FORMER_IMAGE'] ?? '' };
  let svc: Installation;
  beforeAll(async () => {
    if (former === '') throw new Error('Run it with "npm run test:long -- upgrade COMMIT"');
    await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', '--timeout=120s']);
    await crdDelete('slotspecs.inference.svc.dev');
    await crdInstall(join(former, CRD));
    svc = await install({ namespace: NAMESPACE, values: VALUES, release });
    await svc.apply(demoSlot('primary', 'demo-clock', '  replicas: 2\n') + demoSlot('two', 'demo-clock') + demoSlot('three', 'demo-clock'));
    for (const each of SLOTS) await svc.until(each, 'ready', isReady, 240_000);
  }, 600_000);
  afterAll(async () => {
    await svc?.dispose();
    await crdInstall(CRD);
  }, 240_000);

  const podsOfAll = async () => (await Promise.all(SLOTS.map(async (each) => await slotPods(svc, each)))).flat();
  const identities = async () => (await podsOfAll()).map(({ name, uid, restarts }) => ({ name, uid, restarts })).toSorted(byName);
  const byName = (one: { readonly name: string }, other: { readonly name: string }) => one.name.localeCompare(other.name);
  /** What `helm upgrade` does: applies what the chart has, and deletes what it had. */
  const upgrade = async (from: string, to: string): Promise<void> => {
    await svc.kubectl(['apply', '--filename', '-'], to);
    const kept = new Set(kindsAndNames(to));
    const gone = kindsAndNames(from).filter((each) => !kept.has(each));
    if (gone.length > 0) await svc.kubectl(['delete', ...gone]);
    await svc.kubectl(['rollout', 'status', 'deployment/svc', '--timeout=240s']);
  };
  const rest = async (): Promise<void> => {
    for (const each of SLOTS) await svc.until(each, 'ready', isReady, 120_000);
    await pause(REST_MS);
    for (const each of SLOTS) await svc.until(each, 'ready', isReady, 120_000);
  };

  test('is upgraded without a restart of a pod of a slot, and without a lost request', async () => {
    const before = await identities();
    expect(before).toHaveLength(4);
    const [old, present] = [await render(NAMESPACE, VALUES, release), await render(NAMESPACE, VALUES)];
    const loops = SLOTS.map((each) => startClients(svc.url, each, 2, TOKENS));
    await pause(2000);
    await crdInstall(CRD);
    await upgrade(old, present);
    await rest();
    const lost = (await Promise.all(loops.map(async (each) => await each.end()))).flat();
    const answered = loops.reduce((sum, each) => sum + each.done(), 0);
    process.stderr.write(`${answered} answers during the upgrade, ${lost.length} lost\n`);
    expect(lost).toEqual([]);
    expect(answered).toBeGreaterThan(20);
    expect(await identities()).toEqual(before);
  }, 600_000);

  test('has replaced the pods of an edited slot, and no others', async () => {
    const before = await identities();
    await svc.kubectl(['patch', 'slot/two', '--type=merge', '--patch', '{"spec":{"model":{"default":"demo-fox"}}}']);
    await svc.until('two', 'ready with the edit', isReady, 240_000);
    await rest();
    const after = await identities();
    const kept = after.filter(({ uid }) => before.some((each) => each.uid === uid)).map(({ name }) => name);
    const others = before.filter(({ name }) => !name.includes('two')).map(({ name }) => name);
    expect(kept).toEqual(others);
    expect(after).toHaveLength(4);
  }, 600_000);
});
