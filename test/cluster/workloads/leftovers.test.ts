import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { KubeApi, Leadership, OwnerReference } from '../../../src/cluster/client/ports.ts';
import { createReflector } from '../../../src/cluster/client/reflector.ts';
import { CLAIMS, CONFIG_MAPS, DEPLOYMENTS, SERVICES, SLOT_SPECS } from '../../../src/cluster/client/decide/resource-path.ts';
import { kubeObjects } from '../../../src/cluster/workloads/decide/render-deployment.ts';
import { createKubeLeftovers } from '../../../src/cluster/workloads/leftovers.ts';
import { createKubeReflectors, type KubeReflectors } from '../../../src/cluster/workloads/workload-reflectors.ts';
import { createClock } from '../../../src/platform/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { kubeWorkload, SETTINGS } from './workload-fixtures.ts';

const SPACE = 'default';
const MANIFEST = { apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', metadata: { name: 'primary' }, spec: {} };

describe('createKubeLeftovers()', () => {
  let fake: FakeKubeApi;
  let api: KubeApi;
  let ends: AbortController;
  let leads = true;
  const logged: string[] = [];
  /** A thousand times as fast: what is waited for comes at once. */
  const clock = {
    ...createClock(),
    at: (at: number, callback: () => void) => createClock().at(performance.now() + (at - performance.now()) / 1000, callback),
  };
  beforeEach(async () => {
    leads = true;
    logged.length = 0;
    ends = new AbortController();
    fake = await startFakeKubeApi();
    api = await connectToFake(fake, SPACE);
  });
  afterEach(async () => {
    ends.abort();
    await fake.close();
  });

  /** Creates the slot with all its objects, as the runtime does. */
  const declare = (): OwnerReference => {
    const { uid } = fake.put(SLOT_SPECS, SPACE, MANIFEST).metadata;
    const owner = { apiVersion: MANIFEST.apiVersion, kind: MANIFEST.kind, name: 'primary', uid, controller: true };
    const workload = kubeWorkload({ cluster: { storage: { size: '1Gi' } } });
    const objects = kubeObjects(workload, { settings: SETTINGS, owner, allocation: 'device-plugin' });
    fake.put(SERVICES, SPACE, { ...objects.service });
    fake.put(CONFIG_MAPS, SPACE, { ...objects.configMap });
    fake.put(DEPLOYMENTS, SPACE, { ...objects.deployment });
    if (objects.claim !== undefined) fake.put(CLAIMS, SPACE, { ...objects.claim });
    return owner;
  };
  const start = async (): Promise<KubeReflectors> => {
    const reflectors = createKubeReflectors({ api });
    const slots = createReflector({ api, type: SLOT_SPECS });
    const leadership: Pick<Leadership, 'leads' | 'term' | 'changes'> = {
      leads: () => leads,
      term: () => ends.signal,
      changes: () => undefined,
    };
    const log = {
      info: (_: unknown, message: string) => void logged.push(message),
      warn: (_: unknown, message: string) => void logged.push(message),
    };
    createKubeLeftovers({ api, slots, reflectors, leadership, clock, log }).start(ends.signal);
    for (const each of [slots, ...Object.values(reflectors)]) each.start(ends.signal);
    await eventually('the first lists', () => [slots, ...Object.values(reflectors)].every((each) => each.health().kind === 'current'));
    return reflectors;
  };
  const names = () =>
    [SERVICES, CONFIG_MAPS, DEPLOYMENTS, CLAIMS]
      .map((type) => fake.objects(type, SPACE).map(({ kind, metadata }) => `${kind ?? type.kind} ${metadata.name}`))
      .flat();
  const deletions = () => fake.faults.requests.filter(({ verb }) => verb === 'delete').map(({ resource }) => resource);
  const settle = async () => await new Promise((resolve) => setTimeout(resolve, 300));

  test('removes what nobody owns once the server of the slot is stopped, but never a claim with models', async () => {
    declare();
    await start();
    fake.remove(SLOT_SPECS, SPACE, 'primary', 'Orphan');
    await settle();
    // The planner stops the Deployment when its requests have ended.
    expect([names().length, deletions()]).toEqual([4, []]);
    fake.remove(DEPLOYMENTS, SPACE, 'svc-slot-primary');
    await eventually('only the claim is left', () => names().length === 1 && logged.length === 2);
    expect(names()).toEqual(['PersistentVolumeClaim svc-slot-primary']);
    await eventually('both are logged', () => logged.length === 2);
    expect(logged).toEqual([
      'Removed the Service "svc-slot-primary", because its slot was deleted with "--cascade=orphan"',
      'Removed the ConfigMap "svc-slot-primary-0123456789ab", because its slot was deleted with "--cascade=orphan"',
    ]);
  });

  test('finds what was left before it was started, and what another leader did not remove', async () => {
    declare();
    fake.remove(DEPLOYMENTS, SPACE, 'svc-slot-primary');
    fake.remove(SLOT_SPECS, SPACE, 'primary', 'Orphan');
    leads = false;
    await start();
    await settle();
    expect(deletions()).toEqual([]);
    leads = true;
    fake.put(SERVICES, SPACE, {
      metadata: { name: 'svc-slot-other', labels: { 'app.kubernetes.io/managed-by': 'svc', 'inference.svc.dev/slot': 'other' } },
    });
    await eventually('everything is removed', () => names().length === 1);
  });

  test('leaves alone what belongs to a slot, and sends nothing at rest', async () => {
    declare();
    await start();
    fake.remove(DEPLOYMENTS, SPACE, 'svc-slot-primary');
    await settle();
    expect([names().length, deletions()]).toEqual([3, []]);
  });

  test('removes nothing while it is not known which slots there are', async () => {
    declare();
    fake.remove(DEPLOYMENTS, SPACE, 'svc-slot-primary');
    fake.remove(SLOT_SPECS, SPACE, 'primary', 'Orphan');
    fake.faults.answer({ verb: 'list', resource: 'slotspecs' }, { status: 500 }, 1_000_000);
    await Promise.race([start(), settle()]);
    expect(deletions()).toEqual([]);
  });

  test('tries again later if a removal fails, and reports that once', async () => {
    declare();
    await start();
    fake.faults.answer({ verb: 'delete', resource: 'services' }, { status: 500 }, 2);
    fake.remove(DEPLOYMENTS, SPACE, 'svc-slot-primary');
    fake.remove(SLOT_SPECS, SPACE, 'primary', 'Orphan');
    await eventually('everything is removed', () => names().length === 1);
    expect(logged.filter((message) => message.endsWith('failed'))).toHaveLength(1);
  });
});
