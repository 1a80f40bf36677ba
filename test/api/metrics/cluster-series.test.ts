import { describe, expect, test } from '@jest/globals';
import { boardWith, CLUSTER, start } from './metrics-fixture.ts';

describe('createMetrics() in a cluster', () => {
  test('shows the writes that wait and the changes of the leader, and nothing of that on a host', async () => {
    const { metrics } = start('ready', CLUSTER);
    const text = await metrics.text();
    expect(text).toContain('svc_status_writes_waiting{what="status"} 2');
    expect(text).toContain('svc_status_writes_waiting{what="event"} 3');
    expect(text).toMatch(/^svc_leader_transitions_total 7$/m);
    const onHost = await start().metrics.text();
    expect(onHost.match(/^svc_(?:kube|status|leader|slot_replicas)_.*$/gm)).toBeNull();
  });

  test('shows no changes of the leader before the Lease is known, so that they do not look like an increase', async () => {
    let transitions: number | undefined;
    const { metrics } = start('ready', { ...CLUSTER, leaderTransitions: () => transitions });
    expect(await metrics.text()).not.toMatch(/^svc_leader_transitions_total/m);
    transitions = 7;
    expect(await metrics.text()).toMatch(/^svc_leader_transitions_total 7$/m);
    transitions = undefined;
    expect(await metrics.text()).not.toMatch(/^svc_leader_transitions_total/m);
  });

  test('shows the age of each copy as long as it is kept, and of two copies the older one', async () => {
    const { metrics } = start('ready', CLUSTER);
    const ages = async () => (await metrics.text()).match(/^svc_kube_copy_age_seconds\{.*$/gm) ?? [];
    const [first, second] = [new AbortController(), new AbortController()];
    metrics.cluster.copyStarted({ resource: 'leases', ageMs: () => 1500 }, first.signal);
    metrics.cluster.copyStarted({ resource: 'leases', ageMs: () => 0 }, second.signal);
    metrics.cluster.copyStarted({ resource: 'pods', ageMs: () => 0 }, second.signal);
    metrics.cluster.copyStarted({ resource: 'services', ageMs: () => 0 }, AbortSignal.abort());
    expect(await ages()).toEqual(['svc_kube_copy_age_seconds{resource="leases"} 1.5', 'svc_kube_copy_age_seconds{resource="pods"} 0']);
    first.abort();
    expect(await ages()).toEqual(['svc_kube_copy_age_seconds{resource="leases"} 0', 'svc_kube_copy_age_seconds{resource="pods"} 0']);
    second.abort();
    expect(await ages()).toEqual([]);
  });

  test('measures the time of answered requests only', async () => {
    const { metrics } = start('ready', CLUSTER);
    const request = { verb: 'list', resource: 'pods', seconds: 0.3 };
    for (const code of ['200', '503', 'unreachable', 'aborted']) metrics.cluster.requestEnded({ ...request, code });
    const text = await metrics.text();
    expect(text).toContain('svc_kube_requests_total{verb="list",resource="pods",code="unreachable"} 1');
    expect(text).toContain('svc_kube_request_seconds_count{verb="list",resource="pods"} 2');
  });

  test.each([
    ['answers with some of its replicas', 'True', 'ProbePassed', 3, { present: 3, ready: 1 }, [3, 3, 1]],
    ['has no pods yet', 'False', 'Starting', 3, undefined, [3, 0, 0]],
    ['is at rest', 'False', 'IdleTimedOut', 3, undefined, [0, 0, 0]],
    ['is disabled and still ends', 'False', 'Disabled', 3, { present: 1, ready: 1 }, [0, 1, 1]],
    ['is scaled to zero', 'False', 'NoReplicas', 0, undefined, [0, 0, 0]],
    ['is not known', 'Unknown', 'RuntimeUnreachable', 2, { present: 2, ready: 2 }, [2, 2, 2]],
  ] as const)('shows the replicas of a slot that %s', async (_what, status, reason, wanted, replicas, expected) => {
    const { board, metrics } = start('ready', CLUSTER);
    const view = boardWith('ready', [{ type: 'Ready', status, reason, message: '', lastTransitionAt: 1, observedGeneration: 1 }]);
    const slots = [...view.slots].map(([name, slot]) => {
      const spec = { ...slot.spec, cluster: { ...slot.spec.cluster, replicas: wanted } };
      return [name, { ...slot, spec, status: { ...slot.status, ...(replicas === undefined ? {} : { replicas }) } }] as const;
    });
    board.publish({ ...view, slots: new Map(slots) });
    const text = await metrics.text();
    const shown = ['desired', 'present', 'ready'].map((kind) =>
      Number(new RegExp(`^svc_slot_replicas_${kind}\\{slot="primary"\\} (\\d+)$`, 'm').exec(text)?.[1]),
    );
    expect(shown).toEqual(expected);
    board.publish(boardWith());
    expect(await metrics.text()).not.toContain('slot="primary"');
  });
});
