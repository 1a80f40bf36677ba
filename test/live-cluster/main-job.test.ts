/** The main job in a cluster, done with kubectl: real API server, real node, real llama-server, and the gateway as a pod of the chart. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { RICH_OVERLAY } from '../schema/rich-overlay.ts';
import { conditionOf, demoSlot, install, isReady, type Installation } from '../support/live-cluster/cluster.ts';
import { slotPods } from '../support/live-cluster/cluster-replicas.ts';
import { describeWithCluster } from '../support/require/require-cluster.ts';
import { chatText, pause } from '../support/service.ts';
import { hubRequests, HUB_TOKEN, startClusterHub } from '../support/live-cluster/cluster-hub.ts';
import { startStreamLoop } from '../support/live-cluster/stream-loop.ts';

const FIVE = [
  demoSlot('primary', 'demo-fox'),
  demoSlot('embed', 'demo-embed'),
  demoSlot('stt', 'demo-clock', '  load: on-demand\n'),
  demoSlot('tts', 'demo-owl', '  enabled: false\n'),
  demoSlot('img', 'demo-owl', '  load: on-demand\n'),
].join('');

describeWithCluster('A slot in a cluster', () => {
  let svc: Installation;
  beforeAll(async () => {
    svc = await install({ namespace: 'svc-main-job', before: startClusterHub });
  }, 240_000);
  afterAll(() => svc?.dispose(), 240_000);

  const deployments = async (): Promise<readonly string[]> =>
    (await svc.kubectl(['get', 'deployments', '--selector', 'inference.svc.dev/slot', '--output', 'name']))
      .trim()
      .split('\n')
      .filter(Boolean);
  /** Name of the Deployment that was created last. */
  const serverOf = async (): Promise<string> => {
    const names = await svc.kubectl([
      'get',
      'deployments',
      '--selector',
      'inference.svc.dev/slot=primary',
      '--sort-by=.metadata.creationTimestamp',
      '--output',
      'jsonpath={.items[*].metadata.name}',
    ]);
    return names.trim().split(' ').at(-1) ?? '';
  };
  const uid = async (): Promise<string> =>
    svc.kubectl(['get', 'deployments', '--selector', 'inference.svc.dev/slot=primary', '--output', 'jsonpath={.items[*].metadata.uid}']);

  test('is applied together with four others, becomes Ready, and shows its columns', async () => {
    await svc.apply(FIVE);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', 'slot/embed', '--timeout=120s']);
    const [head, ...rows] = (await svc.kubectl(['get', 'slots'])).trim().split('\n');
    expect(head?.split(/\s+/)).toEqual(['NAME', 'STATE', 'MODEL', 'BACKEND', 'READY', 'UP-TO-DATE', 'REASON', 'AGE']);
    expect(rows.map((row) => row.split(/\s+/).slice(0, 6).join(' '))).toEqual([
      'embed ready demo-embed cpu True True',
      // A slot that does not run computes with nothing.
      'img offline demo-owl False True NotAskedFor',
      'primary ready demo-fox cpu True True',
      'stt offline demo-clock False True NotAskedFor',
      'tts offline demo-owl False True Disabled',
    ]);
  }, 180_000);

  test('answers chat and embeddings through the gateway', async () => {
    const answer = await svc.chat();
    expect(answer.status).toBe(200);
    expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-fox']);
    const embedded = await fetch(`${svc.url}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ input: 'hello' }),
    });
    expect(embedded.status).toBe(200);
  }, 60_000);

  test('that is not wanted has no Ready condition, which GitOps tools would wait for', async () => {
    const slot = await svc.until('tts', 'offline', ({ status }) => status?.state === 'offline');
    expect(conditionOf(slot, 'Ready')).toBeUndefined();
    expect(conditionOf(slot, 'Stalled')?.status).toBe('False');
    expect(slot.status?.observedGeneration).toBe(slot.metadata.generation);
  });

  test('that loads on demand is loaded by a request, which waits for it', async () => {
    const answer = await svc.chat({ model: 'img' });
    expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-owl']);
  }, 120_000);

  test.each([
    ['blue-green', 'demo-owl', 'demo-fox'],
    ['drain', 'demo-fox', 'demo-owl'],
  ] as const)(
    'changes its model with kubectl patch and a %s swap, without a lost request',
    async (swap, model, before) => {
      const loop = startStreamLoop(svc, 3);
      await pause(500);
      const patch = JSON.stringify({ spec: { model: { default: model }, lifecycle: { swap } } });
      await svc.kubectl(['patch', 'slot/primary', '--type=merge', '--patch', patch]);
      const deadline = Date.now() + 120_000;
      while (!loop.score.texts.has(DEMO_SENTENCES[model]) && Date.now() < deadline) await pause(50);
      await pause(2000);
      const score = await loop.end();
      expect(score.failures).toEqual([]);
      expect([...score.texts.keys()].sort()).toEqual([DEMO_SENTENCES[before], DEMO_SENTENCES[model]].sort());
      const slot = await svc.until('primary', 'ready with the new model', (seen) => isReady(seen) && seen.status?.model === model);
      expect(conditionOf(slot, 'Ready')?.reason).toBe('ProbePassed');
    },
    240_000,
  );

  test('changes its pods with each edit of their overlay, without a lost request, and then finds no drift', async () => {
    await svc.kubectl(['create', 'secret', 'generic', 'credentials', '--from-literal=token=t0ken']);
    await svc.kubectl(['create', 'configmap', 'settings', '--from-literal=colour=blue']);
    const { priorityClassName: _, server, ...rest } = RICH_OVERLAY;
    const overlay = { ...rest, server: { ...server, resources: { limits: { cpu: '1500m', memory: '0.5Gi' } } } };
    const edit = async (pod: object): Promise<void> => {
      await svc.kubectl(['patch', 'slot/primary', '--type=merge', '--patch', JSON.stringify({ spec: { pod } })]);
      await svc.kubectl(['wait', '--for=condition=UpToDate', 'slot/primary', '--timeout=120s']);
    };
    const labels = async (): Promise<string> =>
      svc.kubectl(['get', 'pods', '--selector', 'inference.svc.dev/slot=primary', '--output', 'jsonpath={.items[*].metadata.labels.team}']);
    const alterations = async (): Promise<string> =>
      svc.kubectl(['get', 'events', '--field-selector', 'involvedObject.name=primary,reason=WorkloadAltered', '--output', 'name']);
    const generations = async (): Promise<string> =>
      svc.kubectl([
        'get',
        'deployments',
        '--selector',
        'inference.svc.dev/slot=primary',
        '--output',
        'jsonpath={.items[*].metadata.generation}',
      ]);
    const loop = startStreamLoop(svc, 3);
    await edit(overlay);
    expect(await labels()).toContain('search');
    await edit({ labels: { team: 'other' } });
    await pause(1000);
    const score = await loop.end();
    expect(score.failures).toEqual([]);
    const [generation, events] = [await generations(), await alterations()];
    await pause(5000);
    expect([await generations(), await alterations()]).toEqual([generation, events]);
    expect(conditionOf(await svc.slot('primary'), 'DriftDetected')?.status).toBe('False');
    expect(await labels()).toContain('other');
    const env = await svc.kubectl([
      'exec',
      `deployment/${await serverOf()}`,
      '--container',
      'server',
      '--',
      'sh',
      '-c',
      'echo $API_TOKEN $MODE',
    ]);
    expect(env.trim()).toBe('t0ken quiet');
    await edit({ labels: null, annotations: null, securityContext: null, affinity: null, volumes: null, server: null, model: null });
  }, 240_000);

  test('reverts changes to its Deployment, but keeps an added label', async () => {
    const [name] = (await deployments()).filter((each) => each.includes('primary'));
    if (name === undefined) throw new Error('There is no Deployment');
    await svc.kubectl(['label', name, 'team=research']);
    await svc.kubectl(['scale', name, '--replicas=0']);
    await svc.until('primary', 'repaired', (seen) => conditionOf(seen, 'DriftDetected')?.status === 'False' && isReady(seen));
    const deadline = Date.now() + 60_000;
    const replicas = async () => svc.kubectl(['get', name, '--output', 'jsonpath={.spec.replicas}']);
    while ((await replicas()) !== '1' && Date.now() < deadline) await pause(100);
    expect(await replicas()).toBe('1');
    expect(await svc.kubectl(['get', name, '--output', 'jsonpath={.metadata.labels.team}'])).toBe('research');
    expect(await svc.kubectl(['get', 'events', '--field-selector', 'involvedObject.name=primary'])).toMatch(/WorkloadAltered/);
    await svc.kubectl(['wait', '--for=condition=Ready', 'slot/primary', '--timeout=90s']);
    expect((await svc.chat()).status).toBe(200);
  }, 180_000);

  test('whose server exits is restarted in the same pod, and a request waits for it', async () => {
    await svc.until('primary', 'ready', isReady);
    const [deployment, [pod]] = await Promise.all([uid(), slotPods(svc, 'primary')]);
    const restarts = (await svc.slot('primary'))?.status?.restarts ?? 0;
    // The first signal lets requests finish, the second one does not.
    await svc.kubectl(['exec', pod?.name ?? '', '--', 'sh', '-c', 'kill -TERM 1; sleep 0.2; kill -TERM 1; sleep 5']).catch(() => undefined);
    const startedAt = performance.now();
    const answer = await svc.chat();
    expect([answer.status, await chatText(answer)]).toEqual([200, DEMO_SENTENCES['demo-fox']]);
    process.stdout.write(`a crash in place: a request was answered after ${Math.round(performance.now() - startedAt)} ms\n`);
    await svc.until('primary', 'ready again', (seen) => isReady(seen) && seen.status?.restarts === restarts + 1);
    expect([await uid(), await slotPods(svc, 'primary')]).toMatchObject([deployment, [{ uid: pod?.uid, ready: true }]]);
    const events = await svc.kubectl(['get', 'events', '--field-selector', 'involvedObject.name=primary,type=Warning']);
    expect(events).toContain('The process of the server ended unexpectedly');
  }, 180_000);

  test('is repaired when its Deployment, its Service or its ConfigMap is deleted', async () => {
    const before = await uid();
    for (const kind of ['deployments', 'services', 'configmaps']) {
      await svc.kubectl(['delete', kind, '--selector', 'inference.svc.dev/slot=primary']);
    }
    const deadline = Date.now() + 90_000;
    const there = async (kind: string) =>
      (await svc.kubectl(['get', kind, '--selector', 'inference.svc.dev/slot=primary', '--output', 'name'])) !== '';
    while (Date.now() < deadline) {
      const now = await uid();
      if (now !== '' && now !== before && (await there('services')) && (await there('configmaps'))) break;
      await pause(200);
    }
    expect(await uid()).not.toBe(before);
    expect([await there('services'), await there('configmaps')]).toEqual([true, true]);
    await svc.until('primary', 'ready', isReady);
    expect((await svc.chat()).status).toBe(200);
  }, 180_000);

  test('moves, or reports why it waits, when its node is drained, and is ready again with the node', async () => {
    const node = await svc.kubectl([
      'get',
      'pods',
      '--selector',
      'inference.svc.dev/slot=primary',
      '--output',
      'jsonpath={.items[0].spec.nodeName}',
    ]);
    try {
      await svc.kubectl([
        'drain',
        node,
        '--pod-selector=inference.svc.dev/slot=primary',
        '--ignore-daemonsets',
        '--delete-emptydir-data',
        '--disable-eviction',
        '--timeout=90s',
      ]);
      const slot = await svc.until('primary', 'Unschedulable', (seen) => conditionOf(seen, 'Ready')?.reason === 'Unschedulable');
      expect(conditionOf(slot, 'Ready')?.message).toMatch(/node/);
    } finally {
      await svc.kubectl(['uncordon', node]);
    }
    await svc.until('primary', 'ready', isReady);
    expect((await svc.chat()).status).toBe(200);
  }, 240_000);

  test('names a model on the Hub: the gateway resolves it, its pods fetch it once for the directory that they share, and the real server answers', async () => {
    const shared = `  storage: { hostPath: /tmp/svc-test-models-${Date.now()} }\n`;
    await svc.apply(demoSlot('hub', 'hf:test/gated', `${shared}  replicas: 2\n`) + demoSlot('twin', 'hf:test/gated', shared));
    await svc.kubectl(['wait', '--for=condition=UpToDate', 'slot/hub', 'slot/twin', '--timeout=150s']);
    for (const model of ['hub', 'twin']) {
      const answer = await svc.chat({ model });
      expect([answer.status, await chatText(answer)]).toEqual([200, DEMO_SENTENCES['demo-owl']]);
    }
    const requests = await hubRequests(svc.kubectl);
    expect(requests.filter(({ path }) => path.includes('/revision/')).length).toBe(1);
    // One for the header, and one for the file. Three pods share the directory: if each fetched for itself, there were four. Two that begin in the same moment may ask before
    // they see the part of the other.
    expect([2, 3]).toContain(requests.filter(({ path, isAuthorized }) => path.includes('/resolve/') && isAuthorized).length);
    const objects = await svc.kubectl(['get', 'slotspecs,deployments,pods,configmaps,events', '--output', 'json']);
    expect(objects.split(HUB_TOKEN).length - 1).toBe(1);
    expect(await svc.kubectl(['get', 'configmaps', '--selector', 'inference.svc.dev/model', '--output', 'name'])).toMatch(
      /^configmap\/svc-model-\S+\n$/,
    );
  }, 200_000);

  test('shows how much of a model its pods have fetched', async () => {
    await svc.apply(demoSlot('slow', 'hf:test/slow'));
    const shows = (share: RegExp) => (seen: Parameters<typeof isReady>[0]) => share.test(conditionOf(seen, 'Reconciling')?.message ?? '');
    const slot = await svc.until(
      'slow',
      'some of it',
      shows(/fetching and verifying the model: \S+ [KM]?i?B of \S+ [KM]?i?B \([1-9]0 %\)/),
    );
    expect(slot.status?.state).toBe('pulling');
    await svc.until('slow', 'ready', isReady);
    expect(await chatText(await svc.chat({ model: 'slow' }))).toBe(DEMO_SENTENCES['demo-owl']);
    await svc.kubectl(['delete', 'slot', 'slow']);
  }, 120_000);

  test.each([
    ['hf:test/none', 'ModelGated', /"HF_TOKEN" is not valid or has no access to "test\/none"/],
    ['hf:test/tiny:Q9_9', 'ModelMissing', /"test\/tiny" has no quantisation "Q9_9"/],
  ])(
    'that names %s is stalled with what to do',
    async (model, reason, message) => {
      await svc.apply(demoSlot('hub', model));
      const slot = await svc.until('hub', reason, (seen) => conditionOf(seen, 'Stalled')?.reason === reason);
      expect(conditionOf(slot, 'Stalled')?.message).toMatch(message);
    },
    120_000,
  );

  test('is deleted with all its objects', async () => {
    await svc.kubectl(['delete', 'slots', '--all']);
    const kinds = 'deployments,services,configmaps,pods';
    const deadline = Date.now() + 90_000;
    const left = async () => svc.kubectl(['get', kinds, '--selector', 'inference.svc.dev/slot', '--output', 'name']);
    while ((await left()) !== '' && Date.now() < deadline) await pause(200);
    expect(await left()).toBe('');
    expect((await svc.chat()).status).toBe(404);
  }, 120_000);
});
