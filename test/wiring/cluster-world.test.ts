/** What each replica in a cluster watches, with a fake API server. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { NO_OBSERVER } from '../../src/cluster/client/client-observer.ts';
import { DEFINITIONS, DEPLOYMENTS, LEASES, PODS, SLOT_SPECS } from '../../src/cluster/client/decide/resource-path.ts';
import type { Log } from '../../src/platform/log.ts';
import type { Traffic } from '../../src/reconciler/ports.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { createClusterWorld } from '../../src/wiring/cluster-world.ts';
import type { World } from '../../src/wiring/world.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../support/kube/fake-kube-api.ts';
import { kubeWorkload, podOf } from '../cluster/workloads/workload-fixtures.ts';
import { valueOf } from '../support/kube/kube-api-contract.ts';

const NOTHING: ReturnType<Traffic['read']> = { workloads: new Map(), demand: new Map() };
const IDLE: Traffic = { read: () => NOTHING, abort: () => undefined, changes: () => undefined };
const ignore = (): void => undefined;
const LOG: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
/** What requests are routed by. */
const OF_EVERYONE = ['configmaps of models', 'deployments', 'pods', 'slotspecs'];
const OF_THE_LEADER = ['configmaps', 'leases', 'services'];

let fake: FakeKubeApi;
let dir: string;
const worlds: World[] = [];

beforeEach(async () => {
  fake = await startFakeKubeApi({ streamedLists: 'served' });
  dir = await mkdtemp(path.join(tmpdir(), 'svc-world-'));
  await writeFile(path.join(dir, 'toolboxes.json'), '{"version":1,"toolboxes":{}}');
});
afterEach(async () => {
  for (const world of worlds.splice(0)) {
    await world.resign();
    await world.stop();
  }
  await fake.close();
  await rm(dir, { recursive: true, force: true });
});

async function start(name: string): Promise<World> {
  const kubeconfig = path.join(dir, name);
  await writeFile(kubeconfig, fake.kubeconfig('demo', name));
  const env = { KUBECONFIG: kubeconfig, SVC_POD_NAME: name, SVC_CONFIG_DIR: dir, SVC_STATE_DIR: dir, SVC_LEASE_DURATION: '2s' };
  const parsed = parseSettings({ ...env, SVC_RUNTIME: 'kube', SVC_NAMESPACE: 'demo', SVC_IMAGE: 'localhost/svc:test' });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  const options = {
    settings: parsed.settings,
    version: 'test',
    log: LOG,
    env,
    toolboxManifest: path.join(dir, 'toolboxes.json'),
    providers: PROVIDERS,
  };
  const world = valueOf(await createClusterWorld(options));
  worlds.push(world);
  world.shareTraffic(IDLE);
  world.start(NO_OBSERVER);
  return world;
}

/** The kinds of which this replica follows all objects, whether they are streamed or listed first. The election follows a single Lease. */
function kindsOf(name: string): readonly string[] {
  const own = fake.faults.requests.filter(
    ({ verb, authorization, url }) => verb === 'watch' && authorization === `Bearer ${name}` && !url.includes('fieldSelector'),
  );
  const ofModels = (url: string): string => (decodeURIComponent(url).includes('inference.svc.dev/model') ? ' of models' : '');
  return [...new Set(own.map(({ resource, url }) => resource + ofModels(url)))].toSorted();
}

describe('createClusterWorld()', () => {
  test('lets every replica watch what routing needs, and only the leader the rest, including the reports of the others', async () => {
    const first = await start('pod-a');
    await eventually('the first leads', () => first.leadership.leads());
    await start('pod-b');
    await eventually('the second has reported', () => fake.objects(LEASES, 'demo').some(({ metadata }) => metadata.name.endsWith('pod-b')));
    await eventually('the second watches', () => kindsOf('pod-b').length >= OF_EVERYONE.length);
    expect(kindsOf('pod-a')).toEqual([...OF_EVERYONE, ...OF_THE_LEADER].toSorted());
    expect(kindsOf('pod-b')).toEqual(OF_EVERYONE);
  });

  test('lets only the leader look whether the definition of slots has been upgraded', async () => {
    const first = await start('pod-a');
    await eventually('the first leads', () => first.leadership.leads());
    await start('pod-b');
    const readers = () =>
      fake.faults.requests
        .filter(({ resource }) => resource === DEFINITIONS.plural)
        .map(({ verb, authorization }) => `${verb} ${authorization}`);
    await eventually('a look', () => readers().length > 0);
    // The second would look at its start, in the moment after its watches have begun.
    await eventually('the second watches', () => kindsOf('pod-b').length >= OF_EVERYONE.length);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(new Set(readers())).toEqual(new Set(['get Bearer pod-a']));
  });

  test('lets a new leader act only after it has read the newest state of everything', async () => {
    const first = await start('pod-a');
    await eventually('the first leads', () => first.leadership.leads());
    const second = await start('pod-b');
    await eventually('the second watches', () => kindsOf('pod-b').length >= OF_EVERYONE.length);
    fake.faults.answer({ verb: ['watch', 'list'], resource: 'services' }, { status: 500 }, 3);
    fake.watches.silence();
    fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'late' }, spec: {} });
    await first.resign();
    await eventually('the second leads', () => second.leadership.leads(), 30_000);
    expect(kindsOf('pod-b')).toEqual([...OF_EVERYONE, ...OF_THE_LEADER].toSorted());
    const desired = valueOf(await second.source.read(new AbortController().signal));
    expect([...desired.slots.keys(), ...desired.refused.keys()]).toEqual(['late']);
    const refused = fake.faults.requests.filter(({ resource, status }) => resource === 'services' && status === 500);
    expect(refused).toHaveLength(3);
    expect(fake.objects(DEPLOYMENTS, 'demo')).toEqual([]);
  });

  test('lets every replica name the leader and list the pods, also those that have no node', async () => {
    const workload = kubeWorkload();
    fake.put(PODS, 'demo', podOf(workload));
    const refused = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are available' };
    fake.put(PODS, 'demo', podOf(workload, { name: 'no-node', ready: false, status: { phase: 'Pending', conditions: [refused] } }));
    const first = await start('pod-a');
    await eventually('the first leads', () => first.leadership.leads());
    const second = await start('pod-b');
    await eventually('the second knows both', () => second.listCluster?.().leader !== undefined && second.listCluster().pods.length === 2);
    for (const [world, replica, leads] of [
      [first, 'pod-a', true],
      [second, 'pod-b', false],
    ] as const) {
      const { pods, ...rest } = world.listCluster?.() ?? { pods: [] };
      expect(rest).toEqual({ replica, leader: 'pod-a', leads });
      expect(new Map(pods.map(({ name, ready, waiting }) => [name, [ready, waiting?.reason]]))).toEqual(
        new Map([
          ['svc-slot-primary-x', [true, undefined]],
          ['no-node', [false, 'Unschedulable']],
        ]),
      );
    }
  });
});
