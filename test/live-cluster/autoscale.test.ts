/** Slots with `autoscale`, without any other program: two gateways report, one of them scales. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { eventually, slotPods, startClients } from '../support/live-cluster/cluster-replicas.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';

const autoscale = (min: number) => `  autoscale: { min: ${min}, max: 3, target: { inFlight: 2 }, window: 10s }\n`;
const PRIMARY = demoSlot('primary', 'demo-clock', autoscale(1));
const LAZY = demoSlot('lazy', 'demo-fox', `  load: on-demand\n  replicas: 0\n${autoscale(0)}`);

describeWithCluster('A slot with autoscale', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-autoscale', values: 'replicas: 2\n' });
    await svc.apply(PRIMARY);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', '--timeout=120s']);
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const untilReady = async (name: string, count: number) =>
    svc.until(
      name,
      `ready with ${count}`,
      (slot) => isReady(slot) && slot.spec['replicas'] === count && slot.status?.readyReplicas === count,
    );

  test('grows with the requests of both gateways and shrinks without them, and loses none', async () => {
    const clients = startClients(svc.url, 'primary', 6, 700);
    await untilReady('primary', 3);
    expect(await clients.end()).toEqual([]);
    const few = startClients(svc.url, 'primary', 1, 150);
    await untilReady('primary', 1);
    expect(await few.end()).toEqual([]);
    expect(await slotPods(svc, 'primary')).toHaveLength(1);
  }, 240_000);

  test('comes back from zero with a request, and goes to zero again', async () => {
    await svc.apply(LAZY);
    // Until both gateways have read the new slot, one of them may not know its model.
    const answer = async () => {
      const response = await svc.chat({ model: 'lazy' });
      return [response.status, await response.text()] as const;
    };
    const [status] = await eventually('the slot is known', answer, ([code]) => code !== 404);
    expect(status).toBe(200);
    await svc.until('lazy', 'scaled to zero', ({ spec, status }) => spec['replicas'] === 0 && (status?.replicas ?? 0) === 0);
  }, 240_000);

  test('takes back what another autoscaler writes', async () => {
    await svc.kubectl(['scale', 'slot/primary', '--replicas=2']);
    await untilReady('primary', 1);
    const leader = await svc.leader();
    await eventually(
      'the leader says what to remove',
      async () => svc.kubectl(['logs', leader]),
      (log) => log.includes('remove the HorizontalPodAutoscaler or ScaledObject of this slot'),
    );
  }, 120_000);
});
