import { describe, expect, test } from '@jest/globals';
import type { KubeObject } from '../../../src/cluster/client/ports.ts';
import { pruneDeployment, prunePlain, prunePod } from '../../../src/cluster/workloads/decide/pod-facts.ts';
import { createKubeObserver, type KubeSnapshot } from '../../../src/cluster/workloads/observe-workloads.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import { kubeWorkload, podOf, snapshotOf } from './workload-fixtures.ts';

const WORKLOAD = kubeWorkload();
const ID = WorkloadId.parse('uid-of-svc-slot-primary');

const without = (snapshot: KubeSnapshot, kind: keyof KubeSnapshot): KubeSnapshot => ({ ...snapshot, [kind]: new Map() });
const newer = (object: KubeObject, part: Readonly<Record<string, unknown>>): KubeObject => ({
  ...object,
  ...part,
  metadata: { ...object.metadata, resourceVersion: `${Number(object.metadata.resourceVersion) + 1}` },
});

describe('createKubeObserver()', () => {
  test('observes what was applied', () => {
    const [found, ...others] = createKubeObserver().observe(snapshotOf([WORKLOAD], [podOf(WORKLOAD)]));
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      id: ID,
      name: 'svc-slot-primary',
      slot: 'primary',
      revision: '0123456789ab',
      generation: 7,
      phase: 'running',
      endpoints: [{ host: '10.0.0.1', port: 8080 }],
      container: { port: { host: 8080, container: 8080 }, argv: undefined, env: undefined },
      replicas: { present: 1, ready: 1 },
    });
  });

  test('selects the pods of each workload of a slot, and none of another one', () => {
    const next = kubeWorkload({ name: 'svc-slot-primary--fedcba987654', revision: 'fedcba987654' });
    const pods = [WORKLOAD, next].map((workload) => podOf(workload));
    const labels = pods.map(({ metadata }) => Object.entries(metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`));
    const found = createKubeObserver().observe(snapshotOf([WORKLOAD, next], pods));
    const selected = found.map(({ replicas }) => {
      const wanted = replicas?.selector?.split(',') ?? [];
      return labels.map((own) => wanted.length > 0 && wanted.every((each) => own.includes(each)));
    });
    expect(selected).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  test('returns the same objects as long as nothing changed, and new ones only for changes', () => {
    const other = kubeWorkload({ slot: 'embed' });
    const observer = createKubeObserver();
    const snapshot = snapshotOf([WORKLOAD, other], [podOf(WORKLOAD), podOf(other)]);
    const first = observer.observe(snapshot);
    expect(observer.observe({ ...snapshot, pods: new Map(snapshot.pods) })).toBe(first);
    // The copies are updated in place.
    const pods = new Map(snapshot.pods);
    pods.set('svc-slot-embed-x', newer(podOf(other), { status: {} }));
    const second = observer.observe({ ...snapshot, pods });
    expect(second).not.toBe(first);
    expect(second[0]).toBe(first[0]);
    expect(second[1]).toMatchObject({ slot: 'embed', phase: 'created' });
    expect(second[1]?.record).toBe(first[1]?.record);
  });

  test('has another record when an object of the workload changed', () => {
    const observer = createKubeObserver();
    const snapshot = snapshotOf([WORKLOAD]);
    const [first] = observer.observe(snapshot);
    for (const kind of ['services', 'configMaps'] as const) {
      const [second] = observer.observe(without(snapshot, kind));
      expect(second?.record).not.toBe(first?.record);
      expect(second === undefined ? undefined : observer.recordOf(second)).toBeDefined();
    }
  });

  test('knows only its own records', () => {
    const [found] = createKubeObserver().observe(snapshotOf([WORKLOAD]));
    expect(found).toBeDefined();
    if (found !== undefined) expect(createKubeObserver().recordOf(found)).toBeUndefined();
  });

  test('reports a workload whose Deployment is gone as stopping, under its id, until its pods are gone too', () => {
    const observer = createKubeObserver();
    const snapshot = snapshotOf([WORKLOAD], [podOf(WORKLOAD)]);
    observer.observe(snapshot);
    const gone = without(snapshot, 'deployments');
    expect(observer.observe(gone)).toMatchObject([{ id: ID, name: 'svc-slot-primary', phase: 'stopping', endpoints: [] }]);
    const ending = podOf(WORKLOAD, { deleting: true });
    expect(observer.observe({ ...gone, pods: new Map([['p', ending]]) })).toMatchObject([{ id: ID, phase: 'stopping' }]);
    const ended = podOf(WORKLOAD, { deleting: true, server: { state: { terminated: { exitCode: 0 } } } });
    expect(observer.observe({ ...gone, pods: new Map([['p', ended]]) })).toEqual([]);
    expect(observer.observe(without(gone, 'pods'))).toEqual([]);
  });

  test('reports such a workload also after a restart of the controller', () => {
    const observer = createKubeObserver();
    const gone = without(snapshotOf([WORKLOAD], [podOf(WORKLOAD, { deleting: true })]), 'deployments');
    const [found, ...others] = observer.observe(gone);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ slot: 'primary', revision: '0123456789ab', phase: 'stopping' });
    expect(found === undefined ? [] : observer.podsOf(gone, found.id)).toHaveLength(1);
  });

  test('does not assign terminating pods to a Deployment that was created again under the old name', () => {
    const observer = createKubeObserver();
    const old = podOf(WORKLOAD, { name: 'old', at: '2026-11-21T08:00:00Z', deleting: true });
    const snapshot = snapshotOf([WORKLOAD], [podOf(WORKLOAD, { name: 'new' }), old]);
    const found = observer.observe(snapshot);
    expect(found).toMatchObject([
      { id: ID, phase: 'running', replicas: { present: 1 } },
      { phase: 'stopping', replicas: { present: 1 } },
    ]);
    expect(observer.podsOf(snapshot, ID).map(({ metadata }) => metadata.name)).toEqual(['new']);
  });

  test('does not assign pods of another revision', () => {
    const other = kubeWorkload({ revision: 'ba9876543210' });
    const found = createKubeObserver().observe(snapshotOf([WORKLOAD], [podOf(other)]));
    expect(found).toMatchObject([
      { revision: '0123456789ab', phase: 'created', endpoints: [] },
      { revision: 'ba9876543210', phase: 'stopping', endpoints: [] },
    ]);
  });

  test('reports warnings about a pod as long as there are any', () => {
    const creating = { ready: false, started: false, state: { waiting: { reason: 'ContainerCreating' } } };
    const pod = podOf(WORKLOAD, { ready: false, server: creating });
    const snapshot = snapshotOf([WORKLOAD], [pod]);
    const warnings = new Map([[pod.metadata.uid ?? '', { reason: 'NetworkNotReady' as const, message: 'no CNI' }]]);
    const observer = createKubeObserver();
    const reasonIn = (seen: KubeSnapshot) => observer.observe(seen)[0]?.waitingReason?.reason;
    const warned = { ...snapshot, warnings };
    expect([snapshot, warned, snapshot].map(reasonIn)).toEqual([undefined, 'NetworkNotReady', undefined]);
    expect(observer.observe({ ...warned, warnings: new Map(warnings) })).toEqual(observer.observe(warned));
    expect([...observer.pods(snapshot)].map(({ metadata }) => metadata.uid)).toEqual([pod.metadata.uid]);
  });

  test('reports what a pod has fetched, and a new object for each change of it', () => {
    const initContainerStatuses = [{ name: 'model', ready: false, restartCount: 0, state: { running: {} } }];
    const pod = podOf(WORKLOAD, { ready: false, server: { state: { waiting: {} } }, status: { initContainerStatuses } });
    const snapshot = snapshotOf([WORKLOAD], [pod]);
    const observer = createKubeObserver();
    const fetchingWith = (text: string) =>
      observer.observe({ ...snapshot, fetched: new Map([[pod.metadata.uid ?? '', text]]) })[0]?.fetching;
    const opening = 'Its pods are fetching and verifying the model';
    expect(observer.observe(snapshot)[0]?.fetching).toBe(opening);
    expect(fetchingWith('1.0 GiB of 2.0 GiB (50 %)')).toBe(`${opening}: 1.0 GiB of 2.0 GiB (50 %)`);
    expect(fetchingWith('1.2 GiB of 2.0 GiB (60 %)')).toBe(`${opening}: 1.2 GiB of 2.0 GiB (60 %)`);
    expect(observer.observe(snapshot)[0]?.fetching).toBe(opening);
  });

  test('ignores foreign objects', () => {
    const snapshot = snapshotOf([WORKLOAD]);
    const foreign: KubeObject = {
      metadata: { name: 'x', uid: 'x', resourceVersion: '1', creationTimestamp: '2026-11-21T09:00:00Z' },
      spec: {},
    };
    const odd: KubeObject = { metadata: { name: 'y' } };
    const found = createKubeObserver().observe({
      ...snapshot,
      deployments: new Map([...snapshot.deployments, ['x', foreign], ['y', odd]]),
      pods: new Map([
        ['x', foreign],
        ['y', odd],
      ]),
    });
    expect(found).toMatchObject([{ id: ID }]);
  });
});

describe('a pruned object', () => {
  const managed = (object: KubeObject): KubeObject => {
    const metadata: KubeObject['metadata'] & { readonly managedFields: unknown } = {
      ...object.metadata,
      managedFields: [{ manager: 'x' }],
    };
    return { ...object, metadata };
  };

  test('yields the same facts', () => {
    const snapshot = snapshotOf([WORKLOAD], [podOf(WORKLOAD)]);
    const keep = (objects: ReadonlyMap<string, KubeObject>, prune: (object: KubeObject) => KubeObject) =>
      new Map([...objects].map(([name, object]) => [name, prune(managed(object))]));
    const kept = {
      deployments: keep(snapshot.deployments, pruneDeployment),
      services: keep(snapshot.services, prunePlain),
      configMaps: keep(snapshot.configMaps, prunePlain),
      pods: keep(snapshot.pods, prunePod),
      warnings: undefined,
    };
    const facts = (of: KubeSnapshot) =>
      createKubeObserver()
        .observe(of)
        .map((each) => ({ ...each, record: undefined }));
    expect(facts(kept)).toEqual(facts(snapshot));
    expect(JSON.stringify([...kept.deployments, ...kept.services, ...kept.configMaps, ...kept.pods])).not.toContain('managedFields');
  });

  test('of an unknown shape is the object itself', () => {
    const odd: KubeObject = { metadata: { name: 'odd' } };
    expect([prunePod(odd), pruneDeployment(odd), prunePlain(odd)]).toEqual([odd, odd, odd]);
  });
});
