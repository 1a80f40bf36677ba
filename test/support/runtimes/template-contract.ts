/**
 * The part of the contract about what runs: everything that a workload says when it is created, and later only what the runtime says it changes in place. It
 * is one table over all fields, so that a stand-in cannot apply more of an edit than a real runtime does.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ClusterWorkload, ObservedWorkload, Runtime, Workload } from '../../../src/reconciler/ports.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import { eventually as waitUntil, freePort, TEST_SLOT, TINY_CLUSTER, type RuntimeWorld } from './runtime-world.ts';

const OTHER_REVISION = 'ba9876543210';
const OTHER_ENV = { GREETING: 'other', MORE: '1' };

/**
 * Another value for each field, which a cluster without devices accepts; its world has the service account. A new field must be added here. The same value
 * as before: it shows nowhere without a device, or without a model to fetch.
 */
const CHANGED: ClusterWorkload = {
  provider: 'gguf',
  backend: 'cpu',
  gpus: 0,
  model: TINY_CLUSTER.model,
  replicas: 2,
  memoryBytes: 24 * 1024 * 1024,
  readyPath: '/env',
  startTimeoutMs: 600_000,
  drainTimeoutMs: 4000,
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'gpu', operator: 'Exists' }],
  storage: { hostPath: '/tmp' },
  serviceAccountName: 'reader',
};

/** Fields in which a running workload follows an edit. */
const IN_PLACE: readonly (keyof ClusterWorkload)[] = ['replicas'];

export function describeTemplateContract(name: string, createWorld: () => Promise<RuntimeWorld>): void {
  describe(`${name} runs what was applied:`, () => {
    let world: RuntimeWorld;
    let runtime: Runtime;
    let ends: AbortController;
    let workload: Workload;
    let pods: boolean;

    beforeEach(async () => {
      world = await createWorld();
      runtime = world.runtime;
      ends = new AbortController();
      workload = world.workload({ port: await freePort() });
      pods = runtime.traits.network === 'pods';
    });
    afterEach(async () => {
      ends.abort();
      await world.dispose();
    });

    const eventually = async <T>(what: string, look: () => Promise<T | undefined>): Promise<T> =>
      await waitUntil(what, look, world.patienceMs);
    const mine = async (): Promise<readonly ObservedWorkload[]> => {
      const facts = await runtime.observe([], ends.signal);
      if (!facts.ok) throw new Error(facts.failure.message);
      return facts.value.workloads.filter((each) => each.slot === TEST_SLOT);
    };
    const apply = async (wanted: Workload): Promise<WorkloadId> => {
      const applied = await runtime.apply(wanted, ends.signal);
      if (!applied.ok) throw new Error(`${applied.failure.reason}: ${applied.failure.message}`);
      return applied.value;
    };
    const found = async (what: string, holds: (each: ObservedWorkload) => boolean) =>
      await eventually(what, async () => (await mine()).find(holds));
    const answering = async (id: WorkloadId) => await found('an endpoint', (each) => each.id === id && each.endpoints.length > 0);
    const environment = async ({ endpoints: [endpoint] }: ObservedWorkload) =>
      await eventually('its environment', async () => (await fetch(`http://${endpoint?.host}:${endpoint?.port}/env`)).text());
    const stop = (id: WorkloadId, graceMs = 5000) => runtime.stop(id, { graceMs }, ends.signal);
    const inPlace = () => {
      if (runtime.traits.inPlace === undefined) throw new Error('It updates nothing in place');
      return runtime.traits.inPlace;
    };
    const withCluster = (part: Partial<ClusterWorkload>, of = workload): Workload => {
      if (of.cluster === undefined) throw new Error('It is not for a cluster');
      return { ...of, cluster: { ...of.cluster, ...part } };
    };
    /** The workload with every field changed. */
    const changed = (of: Workload): Workload => {
      const more = { env: OTHER_ENV, mounts: [{ source: '/models', target: '/models', readOnly: true }], memoryLimitBytes: 48 * 2 ** 20 };
      return pods ? withCluster(CHANGED, { ...of, ...more }) : { ...of, env: OTHER_ENV };
    };
    /** What the pods have, in the words of a workload. */
    const shown = async (each: ObservedWorkload): Promise<unknown> => await world.shows?.(each);
    const expected = ({ argv, memoryLimitBytes, cluster }: Workload) => {
      const { provider: _provider, backend: _backend, gpus: _gpus, model: _model, ...visible } = cluster ?? {};
      return { argv, memoryLimitBytes, ...visible };
    };

    test('a new revision has every field of its own', async () => {
      await answering(await apply(workload));
      const other = changed(
        world.workload({ port: await freePort(), revision: OTHER_REVISION, name: `${workload.name}--${OTHER_REVISION}` }),
      );
      const id = await apply(other);
      const running = await answering(id);
      if (world.real) expect((await environment(running)).split('\n')).toEqual(expect.arrayContaining(['GREETING=other', 'MORE=1']));
      if (running.container.env !== undefined) expect(running.container.env).toMatchObject(OTHER_ENV);
      if (!pods) return;
      await found('all replicas', (each) => each.id === id && each.replicas?.ready === 2);
      expect(await shown(running)).toEqual(expected(other));
      expect(inPlace().isOutdated(other, running)).toBe(false);
    });

    test('applied again, it follows an edit only in what the runtime changes in place', async () => {
      const id = await apply(workload);
      const before = await answering(id);
      const edited = changed(workload);
      if (pods) {
        const outdated = Object.entries(CHANGED).filter(([key, value]) => inPlace().isOutdated(withCluster({ [key]: value }), before));
        expect(outdated.map(([key]) => key)).toEqual(IN_PLACE);
      }
      expect(await apply(pods ? withCluster(CHANGED) : edited)).toBe(id);
      const after = await answering(id);
      if (world.real) expect(await environment(after)).toContain('GREETING=a b=c "d"');
      if (!pods) return;
      const both = await found('both replicas', (each) => each.id === id && each.replicas?.ready === 2);
      expect(await shown(both)).toEqual(expected(withCluster({ replicas: CHANGED.replicas })));
      expect([inPlace().isOutdated(edited, both), inPlace().findAltered(withCluster({ replicas: 2 }), both)]).toEqual([false, []]);
    });

    test('it is one workload if it is applied twice', async () => {
      const first = await apply(workload);
      expect(await apply(workload)).toBe(first);
      expect(await mine()).toHaveLength(1);
    });

    test('it is stopped during its start', async () => {
      const id = await apply(workload);
      expect(await stop(id)).toMatchObject({ ok: true });
      await eventually('nothing is left', async () => ((await mine()).length === 0 ? true : undefined));
      const again = await apply(workload);
      expect(await answering(again)).toMatchObject({ revision: workload.revision });
      expect((await mine()).filter(({ phase }) => phase !== 'stopping')).toHaveLength(1);
    });

    test('while it is being stopped, it takes no requests and is not revived: another one is created', async () => {
      if (!pods) return expect(pods).toBe(false);
      const id = await apply(workload);
      await answering(id);
      const stopping = stop(id, 10_000);
      const leaving = await found('it is stopping', (each) => each.id === id && each.phase === 'stopping');
      expect(leaving).toMatchObject({ name: workload.name, revision: workload.revision, endpoints: [] });
      expect([leaving.startedAt, leaving.waitingReason, leaving.exit]).toEqual([undefined, undefined, undefined]);
      const next = await apply(workload);
      expect(next).not.toBe(id);
      expect(await stopping).toMatchObject({ ok: true });
      await answering(next);
      expect(await mine()).toMatchObject([{ id: next }]);
    });

    test('it has no replica where it asks for none, waits for nothing then, and is scaled from there', async () => {
      if (!pods) return expect(pods).toBe(false);
      const none = withCluster({ replicas: 0 });
      const id = await apply(none);
      const isEmpty = (each: ObservedWorkload): boolean => each.phase === 'created' && each.replicas?.present === 0;
      const empty = await found('it has no replica', isEmpty);
      expect(empty).toMatchObject({ id, endpoints: [], replicas: { present: 0, ready: 0 } });
      expect([empty.waitingReason, empty.exit, empty.fetching]).toEqual([undefined, undefined, undefined]);
      expect([inPlace().isOutdated(none, empty), inPlace().findAltered(none, empty)]).toEqual([false, []]);
      expect(inPlace().isOutdated(workload, empty)).toBe(true);
      expect(await apply(workload)).toBe(id);
      await answering(id);
      expect(await apply(none)).toBe(id);
      await found('it has no replica again', isEmpty);
    });

    test.each([0, 3])('it is scaled back after something else scaled it to %s', async (replicas) => {
      if (world.scale === undefined) return expect(pods).toBe(false);
      const id = await apply(workload);
      const running = await answering(id);
      await world.scale(running, replicas);
      const drift = (each: ObservedWorkload): readonly string[] => inPlace().findAltered(workload, each);
      const altered = await found('it is altered', (each) => drift(each).length > 0 && each.replicas?.present === replicas);
      expect(drift(altered)).toEqual([expect.stringMatching(new RegExp(`^replicas ${replicas} instead of 1`))]);
      expect(inPlace().isOutdated(workload, altered)).toBe(false);
      expect(await apply(workload)).toBe(id);
      const repaired = await found('one replica', (each) => each.replicas?.present === 1 && each.replicas.ready === 1);
      expect([repaired.id, drift(repaired)]).toEqual([id, []]);
    });
  });
}
