/**
 * New models that are judged in a cluster with two gateways: by cases of a ConfigMap, while the leader is killed, and by what happens after
 * they serve. Clients ask all the time and lose nothing.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { conditionOf, demoSlot, install, isReady, type Installation, type SlotResourceView } from '../support/live-cluster/cluster.ts';
import { eventually, gatewaysOf, slotPods } from '../support/live-cluster/cluster-replicas.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { kill } from './kube-world.ts';

const FOX = DEMO_SENTENCES['demo-fox'];
const OWL = DEMO_SENTENCES['demo-owl'];
const knows = (word: string, count = 1): string => {
  const line = JSON.stringify({
    request: { messages: [{ role: 'user', content: 'Who?' }], max_tokens: 24 },
    expect: { contains: word },
    required: true,
  });
  return `${line}\n`.repeat(count);
};
const serves =
  (model: string) =>
  (slot: SlotResourceView): boolean =>
    isReady(slot) && conditionOf(slot, 'UpToDate')?.status === 'True' && slot.status?.model === model;
const CALLS_TOOL = `${JSON.stringify({
  request: {
    messages: [{ role: 'user', content: 'What is the weather in Oslo?' }],
    max_tokens: 24,
    tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }],
  },
  expect: { tool: { name: 'weather' } },
})}\n`;
/** So many of the revisions that are kept. All: SVC_TEST_ROUNDS=20. */
const KEPT = Number(process.env['SVC_TEST_ROUNDS'] ?? 4);
const isRolledBack = (slot: SlotResourceView): boolean => {
  const stalled = conditionOf(slot, 'Stalled');
  return slot.status?.observedGeneration === slot.metadata.generation && stalled?.status === 'True' && stalled.reason === 'RolledBack';
};

describeWithCluster('A new model in a cluster', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-judged', values: 'replicas: 2\n' });
    await check(knows('fox'));
    await svc.apply(demoSlot('primary', 'demo-fox', '  rollout:\n    check: golden/cases.jsonl\n'));
    await svc.until('primary', 'ready', isReady);
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const check = async (cases: string): Promise<unknown> =>
    svc.kubectl(
      ['apply', '--filename', '-'],
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'golden', labels: { 'inference.svc.dev/checks': 'true' } },
        data: { 'cases.jsonl': cases },
      }),
    );
  const patch = async (spec: object): Promise<unknown> =>
    svc.kubectl(['patch', 'slot/primary', '--type=merge', '--patch', JSON.stringify({ spec })]);
  const rollout = async (verb: string, ...args: readonly string[]) =>
    await svcctl(['rollout', verb, 'slot/primary', '-n', svc.namespace, ...args]);
  const answers = async (): Promise<ReadonlySet<string>> => {
    const all = [svc.url, ...(await gatewaysOf(svc)).map(({ url }) => url)];
    return new Set(await Promise.all(all.map(ask)));
  };
  const ask = async (url: string): Promise<string> => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'primary', max_tokens: 24, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return JSON.parse(await response.text()).choices[0].message.content.trim();
  };
  /** Requests from four clients until `during` has ended; each is answered with one of the texts. */
  const underLoad = async (texts: readonly string[], during: () => Promise<void>, url = svc.url): Promise<void> => {
    const loop = startRequestLoop(async () => await ask(url), 4);
    try {
      await during();
    } finally {
      await loop.end();
    }
    expect(loop.failures).toEqual([]);
    expect([...loop.answers].filter((text) => !texts.includes(text))).toEqual([]);
  };

  test.each([
    ['answers nonsense', knows('fox'), {}, 'contains "fox"'],
    ['is too slow', knows('o'), { limits: { tokensPerSecond: 1_000_000 } }, 'The speed is'],
    ['calls no tool', CALLS_TOOL, {}, 'tool'],
  ])(
    'that %s gets no request at any gateway, and is rolled back',
    async (_what, cases, rules, reason) => {
      await patch({ model: { default: 'demo-fox' }, rollout: { limits: null, ...rules } });
      await svc.until('primary', 'in force', serves('demo-fox'));
      await check(cases);
      await underLoad([FOX], async () => {
        await patch({ model: { default: 'demo-owl' } });
        await svc.until('primary', 'rolled back', isRolledBack);
      });
      expect(await answers()).toEqual(new Set([FOX]));
      expect((await rollout('status', '--timeout', '20s')).err + (await svcctl(['explain', 'primary', '-n', svc.namespace])).out).toContain(
        reason,
      );
      expect((await rollout('history')).out).toMatch(/rolled_back/u);
    },
    240_000,
  );

  test('is judged again once its cases are edited, also by the next leader, and serves', async () => {
    const leader = await svc.leader();
    // A request on a gateway that is killed cannot survive.
    const other = (await gatewaysOf(svc)).find(({ name }) => name !== leader)?.url ?? '';
    const during = async (): Promise<void> => {
      // Enough of them that the leader is killed meanwhile.
      await check(knows('owl', 400));
      await svc.until('primary', 'judged', (slot) => conditionOf(slot, 'Reconciling')?.reason === 'Evaluating');
      await svc.kubectl(['delete', 'pod', leader, '--grace-period=0', '--force']);
      await svc.until('primary', 'ready with the new model', serves('demo-owl'), 180_000);
    };
    await underLoad([FOX, OWL], during, other);
    expect(await answers()).toEqual(new Set([OWL]));
  }, 300_000);

  test('that is watched and crashes is rolled back', async () => {
    await patch({ rollout: { check: null, watch: '30m' } });
    await svc.until('primary', 'ready', serves('demo-owl'));
    await patch({ model: { default: 'demo-fox' } });
    await svc.until('primary', 'ready with the new model', serves('demo-fox'));
    await underLoad([FOX, OWL], async () => {
      const [pod] = await eventually(
        'the old pod is gone',
        async () => slotPods(svc, 'primary'),
        (pods) => pods.length === 1,
      );
      await kill(async (...args: readonly string[]) => await svc.kubectl(args), pod?.name ?? '');
      await svc.until('primary', 'rolled back', isRolledBack, 180_000);
      await eventually('the text before serves', answers, (texts) => texts.size === 1 && texts.has(OWL), 120_000);
    });
    expect(conditionOf(await svc.slot('primary'), 'Stalled')?.message).toContain('It was watched for 30m ("watch")');
  }, 420_000);

  test(`an edit is undone to each of ${KEPT} revisions`, async () => {
    await patch({ model: { default: 'demo-owl' }, rollout: null });
    await svc.until('primary', 'ready', serves('demo-owl'));
    for (let priority = 1; priority <= KEPT; priority += 1) {
      await patch({ priority });
      await svc.until('primary', 'in force', serves('demo-owl'));
    }
    const listed = async (): Promise<readonly { readonly revision: number; readonly spec: { readonly priority?: number } }[]> =>
      JSON.parse((await rollout('history', '-o', 'json')).out).revisions;
    const revisions = await eventually(
      'the history is written',
      async () => (await listed()).slice(-KEPT),
      (found) => found.length === KEPT && found.every(({ spec }, index) => spec.priority === index + 1),
    );
    for (const { revision, spec } of revisions) {
      expect(await rollout('undo', '--to-revision', String(revision), '--wait')).toMatchObject({ code: 0 });
      expect((await svc.slot('primary'))?.spec['priority']).toBe(spec.priority);
    }
    expect(await answers()).toEqual(new Set([OWL]));
  }, 300_000);

  test('an edit waits while rollouts are paused', async () => {
    expect(await rollout('pause')).toMatchObject({ code: 0 });
    await patch({ model: { default: 'demo-fox' } });
    await svc.until('primary', 'paused', (slot) => conditionOf(slot, 'UpToDate')?.reason === 'Paused');
    expect(await answers()).toEqual(new Set([OWL]));
    expect(await rollout('undo')).toMatchObject({ code: 1, err: expect.stringContaining('svcctl rollout resume slot/primary') });
    expect(await rollout('resume', '--wait')).toMatchObject({ code: 0 });
    expect(await answers()).toEqual(new Set([FOX]));
  }, 180_000);
});
