/** Conversations with three llama-server pods through two gateways: their turns meet the pod whose cache has the turns before. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { eventually, gatewaysOf, metric, slotPods, type Gateway, type SlotPod } from '../support/live-cluster/cluster-replicas.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';

const CONVERSATIONS = 60;
const TURNS = 8;
/** Conversations at once. */
const CLIENTS = 12;
/** Tokens of the template around an answer, which may be divided otherwise in the next turn. */
const SEAM_TOKENS = 16;

const SLOT = demoSlot('primary', 'demo-fox', '  replicas: 1\n').replace(
  'args: ["--threads", "1"]',
  'args: ["--threads", "1", "--metrics"]',
);

interface Turn {
  readonly promptTokens: number;
  readonly computedTokens: number;
  readonly cachedTokens: number;
}

interface Conversation {
  readonly messages: { readonly role: string; readonly content: string }[];
  readonly turns: Turn[];
}

const newConversations = (of: string): readonly Conversation[] =>
  Array.from({ length: CONVERSATIONS }, (_, index) => ({
    messages: [{ role: 'system', content: 'You answer in one short sentence.' }, question(`${of} ${index}`, 0)],
    turns: [],
  }));
const question = (of: string, turn: number) => ({ role: 'user', content: `Question ${turn} of ${of}: what does it do then?` });

describeWithCluster('Conversations with several pods', () => {
  let svc: Installation;
  let gateways: readonly Gateway[];
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-conversations', values: 'replicas: 2\n' });
    await svc.apply(SLOT);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', '--timeout=120s']);
    gateways = await eventually(
      'there are two gateways',
      async () => gatewaysOf(svc),
      ({ length }) => length === 2,
    );
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  async function scaleTo(count: number): Promise<readonly SlotPod[]> {
    await svc.kubectl(['scale', 'slot/primary', `--replicas=${count}`]);
    await svc.until('primary', `ready with ${count}`, (slot) => isReady(slot) && slot.status?.readyReplicas === count);
    for (const { url } of gateways)
      await eventually(
        `${url} sees ${count} pods`,
        async () => JSON.parse(await (await fetch(`${url}/api/slots/primary`)).text()).status.replicas,
        (replicas) => replicas?.ready === count && replicas?.present === count,
      );
    return slotPods(svc, 'primary');
  }

  async function ask({ messages, turns }: Conversation, gateway: number): Promise<void> {
    const answer = await fetch(`${gateways[gateway % gateways.length]?.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'primary', messages }),
    });
    expect(answer.status).toBe(200);
    const { choices, usage, timings } = JSON.parse(await answer.text());
    turns.push({ promptTokens: usage.prompt_tokens, computedTokens: timings.prompt_n, cachedTokens: timings.cache_n });
    messages.push(choices[0].message, question('it', turns.length));
  }

  async function converse(conversations: readonly Conversation[]): Promise<void> {
    const waiting = conversations.entries();
    const client = async (): Promise<void> => {
      // Clients share the iterator.
      for (const [index, conversation] of waiting) for (let turn = 0; turn < TURNS; turn += 1) await ask(conversation, index + turn);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  }

  const spoken = async (pods: readonly SlotPod[]): Promise<readonly number[]> =>
    Promise.all(pods.map(async ({ ip }) => metric(`http://${ip}:8080`, 'llamacpp:tokens_predicted_total', '', '/metrics')));

  /** Sends one more turn of each conversation alone. Returns the name of the pod that answered it. */
  async function homesOf(conversations: readonly Conversation[], pods: readonly SlotPod[]): Promise<readonly string[]> {
    const homes: string[] = [];
    let before = await spoken(pods);
    for (const [index, conversation] of conversations.entries()) {
      await ask(conversation, index);
      const known = before;
      before = await eventually(
        'the answer is counted',
        async () => spoken(pods),
        (now) => now.some((tokens, pod) => tokens > (known[pod] ?? 0)),
      );
      homes.push(pods[before.findIndex((tokens, pod) => tokens > (known[pod] ?? 0))]?.name ?? '');
    }
    return homes;
  }

  const computed = (conversations: readonly Conversation[]): number =>
    conversations.flatMap(({ turns }) => turns).reduce((sum, { computedTokens }) => sum + computedTokens, 0);

  let ofOne = 0;

  test('compute their prompts on one pod once', async () => {
    const conversations = newConversations('one');
    await converse(conversations);
    ofOne = computed(conversations);
    expect(ofOne).toBeGreaterThan(0);
  }, 180_000);

  test('compute hardly more on three pods, of which none has more than its share of the load', async () => {
    const pods = await scaleTo(3);
    const before = await spoken(pods);
    const conversations = newConversations('all');
    await converse(conversations);
    const later = conversations.flatMap(({ turns }) => turns.slice(1).map((turn, index) => ({ turn, before: turns[index] })));
    const atHome = later.filter(({ turn, before: last }) => turn.cachedTokens >= (last?.promptTokens ?? 0) - SEAM_TOKENS);
    const loads = (await spoken(pods)).map((tokens, pod) => tokens - (before[pod] ?? 0));
    const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
    const shown = {
      atHome: atHome.length / later.length,
      hottest: Math.max(...loads) / mean,
      computed: computed(conversations) / ofOne,
    };
    process.stdout.write(`${JSON.stringify({ ...shown, loads, ofOne, ofThree: computed(conversations) })}\n`);
    expect(shown.atHome).toBeGreaterThanOrEqual(0.9);
    expect(shown.hottest).toBeLessThanOrEqual(1.25);
    expect(shown.computed).toBeLessThanOrEqual(1.15);
  }, 240_000);

  test('move only with the pod that goes or comes', async () => {
    const conversations = newConversations('moves');
    const three = await slotPods(svc, 'primary');
    const before = await homesOf(conversations, three);
    const left = await scaleTo(2);
    const names = left.map(({ name }) => name);
    const after = await homesOf(conversations, left);
    for (const [index, home] of before.entries()) if (names.includes(home)) expect(after[index]).toBe(home);
    const again = await scaleTo(3);
    const [added] = again.filter(({ name }) => !names.includes(name));
    const last = await homesOf(conversations, again);
    const moved = last.filter((home, index) => home !== after[index]);
    process.stdout.write(
      `moved with a pod that went: ${after.filter((home, index) => home !== before[index]).length}, that came: ${moved.length}\n`,
    );
    expect(new Set(moved)).toEqual(new Set([added?.name]));
    expect(moved.length).toBeLessThan(CONVERSATIONS / 2);
  }, 240_000);
});
