/** What users and tools see of slots while gateways come and go: with none at all, with two that are restarted, and after a slot was deleted without its objects. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { judge } from '../cluster/slots/decide/kstatus.ts';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';
import { createClusterNamespace, type ClusterNamespace } from '../support/live-cluster/cluster-namespace.ts';
import { conditionOf, demoSlot, type SlotResourceView } from '../support/live-cluster/cluster.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { untilAtRest } from '../support/live-cluster/slot-objects.ts';

const LEASE_S = 6;
const REST = '  enabled: false\n';
const LAZY = '  load: on-demand\n';
const CLAIM = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: svc-slot-pet, labels: { app.kubernetes.io/managed-by: svc, inference.svc.dev/slot: pet } }
spec: { storageClassName: none-has-it, accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Mi } } }
`;

interface SeenByGateway {
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }[];
  };
}

describeWithCluster('The status of slots', () => {
  let space: ClusterNamespace;
  let gateways: readonly [ClusterController, ClusterController];
  beforeAll(async () => {
    space = await createClusterNamespace('statuses', () => gateways.map((each) => each.output()).join('\n'));
    const environment = { SVC_LEASE_DURATION: `${LEASE_S}s` };
    const make = async (identity: string) => createClusterController({ namespace: space.name, identity, environment });
    gateways = [await make('gateway-a'), await make('gateway-b')];
  }, 60_000);
  afterAll(async () => {
    for (const each of gateways ?? []) await each.dispose();
    await space?.dispose();
  }, 60_000);

  /** Its columns but the age. Whether it has answered a request lately does not matter here. */
  const row = async (slot: string): Promise<string> => {
    const columns = (await space.kubectl(['get', 'slot', slot, '--no-headers'])).trim().split(/\s+/).slice(0, -1);
    return columns.join(' ').replace(/ (?:ready|serving|idle) /, ' answers ');
  };
  const shows = async (slot: string, columns: string): Promise<void> =>
    await eventually(`"${slot}" shows "${columns}"`, async () => (await row(slot)) === columns, 60_000);
  const verdict = async (slot: string) => judge((await space.slot(slot)) ?? { metadata: {} });
  const is = async (slot: string, type: string, status: string): Promise<SlotResourceView> =>
    await space.until(slot, `${type}=${status}`, (seen) => conditionOf(seen, type)?.status === status);
  const podsOf = async (slot: string): Promise<string> =>
    await space.kubectl(['get', 'pods', '--selector', `inference.svc.dev/slot=${slot}`, '--output', 'jsonpath={.items[*].metadata.uid}']);
  /** What each gateway itself says of the slot: its answer, and its conditions. */
  const viewsOf = async (slot: string) =>
    await Promise.all(
      gateways.map(async ({ url, chat }) => {
        const answer = await chat({ model: slot }, AbortSignal.timeout(30_000));
        const seen: SeenByGateway = JSON.parse(await (await fetch(`${url}/api/slots/${slot}`)).text());
        const conditions = seen.status.conditions.map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`);
        return { status: answer.status, conditions: conditions.toSorted() };
      }),
    );
  const leader = async (): Promise<ClusterController> => {
    const holder = await space.kubectl(['get', 'lease', 'svc-controller', '--output', 'jsonpath={.spec.holderIdentity}']);
    const [first, second] = gateways;
    return holder === first.identity ? first : second;
  };
  const restart = async (gateway: ClusterController): Promise<void> => {
    await gateway.kill('SIGKILL');
    await gateway.start();
  };

  test('without a gateway says that nobody has looked, and tools wait', async () => {
    await space.apply(
      demoSlot('pet', 'demo-fox').replace('  provider: gguf\n', '') +
        demoSlot('rest', 'demo-owl', REST) +
        demoSlot('lazy', 'demo-owl', LAZY),
    );
    for (const slot of ['pet', 'rest', 'lazy']) {
      expect(await row(slot)).toBe(`${slot} Unknown NotYetSeen`);
      expect(await verdict(slot)).toBe('InProgress');
    }
  }, 30_000);

  test('of slots at rest says why they rest, and tools do not wait', async () => {
    await Promise.all(gateways.map((each) => each.start()));
    await shows('rest', 'rest offline demo-owl False True Disabled');
    await shows('lazy', 'lazy offline demo-owl False True NotAskedFor');
    await shows('pet', 'pet answers demo-fox cpu True True ProbePassed');
    for (const slot of ['pet', 'rest', 'lazy']) expect(await verdict(slot)).toBe('Current');
  }, 120_000);

  test('with a mistake in its text is the same in both gateways, whichever of them is restarted, and the slot goes on', async () => {
    const pods = await podsOf('pet');
    // That the model decides the provider, and the provider the backends, is known to the program only.
    await space.patch('pet', { backend: 'npu' });
    await is('pet', 'SpecValid', 'False');
    await shows('pet', 'pet answers demo-fox cpu True False SpecInvalid');
    expect(await verdict('pet')).toBe('Failed');
    const expectBothServe = async () => {
      const served = [
        expect.stringMatching(/^Ready=True ProbePassed/),
        expect.stringMatching(/^SpecValid=False SpecInvalid: backend: .*; the last valid spec stays in force$/),
      ];
      await eventually('both gateways agree', async () => {
        const [one, other] = await viewsOf('pet');
        return JSON.stringify(one) === JSON.stringify(other);
      });
      for (const view of await viewsOf('pet')) expect(view).toEqual({ status: 200, conditions: expect.arrayContaining(served) });
    };
    await expectBothServe();
    const follower = (await leader()) === gateways[0] ? gateways[1] : gateways[0];
    await restart(follower);
    // A single answer of 503 would be one too many.
    for (const { status } of await viewsOf('pet')) expect(status).toBe(200);
    await expectBothServe();
    await restart(await leader());
    for (const { status } of await viewsOf('pet')) expect(status).toBe(200);
    await expectBothServe();
    await Promise.all(gateways.map(async (each) => each.kill('SIGKILL')));
    await Promise.all(gateways.map(async (each) => each.start()));
    await expectBothServe();
    expect(await row('pet')).toBe('pet answers demo-fox cpu True False SpecInvalid');
    expect(await podsOf('pet')).toBe(pods);
    await space.patch('pet', { backend: 'cpu' });
    await shows('pet', 'pet answers demo-fox cpu True True ProbePassed');
    expect(await podsOf('pet')).toBe(pods);
  }, 180_000);

  test('has an Event when a swap begins and when it has ended', async () => {
    await space.patch('pet', { model: { default: 'demo-owl' } });
    await shows('pet', 'pet answers demo-owl cpu True True ProbePassed');
    const events = async () =>
      await space.kubectl([
        'get',
        'events',
        '--field-selector',
        'involvedObject.name=pet',
        '--output',
        'jsonpath={range .items[*]}{.reason}: {.message}{"\\n"}{end}',
      ]);
    await eventually('both Events', async () => (await events()).includes('SwapFinished'), 20_000);
    // A list is sorted by names, which say nothing about time.
    const swaps = (await events()).split('\n').filter((line) => line.startsWith('Swap'));
    expect(swaps.toSorted()).toEqual([
      'SwapFinished: Model "demo-owl" answers now instead of model "demo-fox"',
      'SwapStarted: Model "demo-owl" replaces model "demo-fox"',
    ]);
  }, 90_000);

  test('of a slot that was deleted and declared again without a gateway is that of the server that still runs', async () => {
    await eventually('the server of the last model has ended', async () => !(await podsOf('pet')).includes(' '), 60_000);
    const pods = await podsOf('pet');
    await Promise.all(gateways.map(async (each) => each.kill('SIGKILL')));
    await space.kubectl(['delete', 'slot', 'pet', '--cascade=orphan']);
    await space.apply(demoSlot('pet', 'demo-owl').replace('  provider: gguf\n', ''));
    await Promise.all(gateways.map(async (each) => each.start()));
    await shows('pet', 'pet answers demo-owl cpu True True ProbePassed');
    await untilAtRest(space.name, new Map(Object.entries({ pet: 1, rest: 0, lazy: 0 })));
    expect(await podsOf('pet')).toBe(pods);
  }, 120_000);

  test('is gone with "--cascade=orphan", and so is everything but a claim with models', async () => {
    await space.kubectl(['apply', '--filename', '-'], CLAIM);
    await space.kubectl(['delete', 'slot', 'pet', '--cascade=orphan']);
    const left = async (kinds: string) =>
      await space.kubectl(['get', kinds, '--selector', 'inference.svc.dev/slot=pet', '--output', 'name']);
    await eventually(
      'the objects of the slot are removed',
      async () => (await left('deployments,services,configmaps,pods')) === '',
      60_000,
    );
    expect(await left('persistentvolumeclaims')).toBe('persistentvolumeclaim/svc-slot-pet\n');
  }, 90_000);
});
