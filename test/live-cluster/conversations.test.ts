/** Conversations with three llama-server pods through two gateways: their turns meet the pod whose cache has the turns before. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CONVERSATIONS, converse, homesOf, newConversations, SERVER_ARGS, type LlamaServer } from '../support/conversations.ts';
import { demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { eventually, gatewaysOf, slotPods } from '../support/live-cluster/cluster-replicas.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';

const SLOT = demoSlot('primary', 'demo-fox').replace('["--threads", "1"]', JSON.stringify(SERVER_ARGS));

describeWithCluster('Conversations with several pods', () => {
  let svc: Installation;
  let gateways: readonly string[];
  let ofOne = 0;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-conversations', values: 'replicas: 2\n' });
    await svc.apply(SLOT);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', '--timeout=120s']);
    const running = await eventually(
      'there are two gateways',
      async () => gatewaysOf(svc),
      ({ length }) => length === 2,
    );
    gateways = running.map(({ url }) => url);
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const pods = async (): Promise<readonly LlamaServer[]> =>
    (await slotPods(svc, 'primary')).map(({ name, ip }) => ({ name, url: `http://${ip}:8080` }));

  async function scaleTo(count: number): Promise<readonly LlamaServer[]> {
    await svc.kubectl(['scale', 'slot/primary', `--replicas=${count}`]);
    await svc.until('primary', `ready with ${count}`, (slot) => isReady(slot) && slot.status?.readyReplicas === count);
    for (const url of gateways)
      await eventually(
        `${url} sees ${count} pods`,
        async () => JSON.parse(await (await fetch(`${url}/api/slots/primary`)).text()).status.replicas,
        (replicas) => replicas?.ready === count && replicas?.present === count,
      );
    return pods();
  }

  test('compute their prompts on one pod once', async () => {
    const one = await pods();
    ofOne = (await converse(newConversations('one', one), gateways, one)).computedTokens;
    expect(ofOne).toBeGreaterThan(0);
  }, 180_000);

  test('compute hardly more on three pods, of which none has more than its share of the load', async () => {
    const three = await scaleTo(3);
    const { atHome, hottest, computedTokens, loads } = await converse(newConversations('all', three), gateways, three);
    process.stdout.write(`${JSON.stringify({ atHome, hottest, loads, computedTokens, ofOne })}\n`);
    expect(atHome).toBeGreaterThanOrEqual(0.9);
    expect(hottest).toBeLessThanOrEqual(1.25);
    expect(computedTokens / ofOne).toBeLessThanOrEqual(1.15);
  }, 240_000);

  test('move only with the pod that goes or comes', async () => {
    const three = await pods();
    const conversations = newConversations('moves', three);
    const before = await homesOf(conversations, gateways, three);
    const left = await scaleTo(2);
    const names = left.map(({ name }) => name);
    const after = await homesOf(conversations, gateways, left);
    for (const [index, home] of before.entries()) if (names.includes(home)) expect(after[index]).toBe(home);
    const again = await scaleTo(3);
    const added = again.find(({ name }) => !names.includes(name));
    const last = await homesOf(conversations, gateways, again);
    const moved = last.filter((home, index) => home !== after[index]);
    process.stdout.write(
      `moved with the pod that went ${after.filter((home, index) => home !== before[index]).length}, that came ${moved.length}\n`,
    );
    expect(new Set(moved)).toEqual(new Set([added?.name]));
    expect(moved.length).toBeLessThan(CONVERSATIONS / 2);
  }, 240_000);
});
