/** The contract of every runtime. Each adapter runs this suite against its own world. */
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { LogLine, ObservedWorkload, Runtime, Workload } from '../../../src/reconciler/ports.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import { describeTemplateContract } from './template-contract.ts';
import { describeWorkContract } from './work-contract.ts';
import { eventually as waitUntil, freePort, TEST_SLOT, type RuntimeWorld } from './runtime-world.ts';

export function describeRuntimeContract(name: string, createWorld: () => Promise<RuntimeWorld>): void {
  describeTemplateContract(name, createWorld);
  describeWorkContract(name, createWorld);
  describe(`${name} keeps the contract of runtimes:`, () => {
    let world: RuntimeWorld;
    let runtime: Runtime;
    let ends: AbortController;
    let port: number;
    let workload: Workload;
    let pods: boolean;

    beforeEach(async () => {
      world = await createWorld();
      runtime = world.runtime;
      ends = new AbortController();
      port = await freePort();
      workload = world.workload({ port });
      pods = runtime.traits.network === 'pods';
    });
    afterEach(async () => {
      ends.abort();
      await world.dispose();
    });

    const eventually = async <T>(what: string, look: () => Promise<T | undefined>): Promise<T> =>
      await waitUntil(what, look, world.patienceMs);
    const mine = async (of: Runtime = runtime): Promise<readonly ObservedWorkload[]> => {
      const facts = await of.observe([], ends.signal);
      if (!facts.ok) throw new Error(facts.failure.message);
      return facts.value.workloads.filter((each) => each.slot === TEST_SLOT);
    };
    const apply = async (wanted: Workload, by: Runtime = runtime): Promise<WorkloadId> => {
      const applied = await by.apply(wanted, ends.signal);
      if (!applied.ok) throw new Error(`${applied.failure.reason}: ${applied.failure.message}`);
      return applied.value;
    };
    const inPhase = (phase: ObservedWorkload['phase'], of: Runtime = runtime) =>
      eventually(`one workload is ${phase}`, async () => (await mine(of)).find((each) => each.phase === phase));
    /** Resolves as soon as the server answers: where each replica has an address, once the address is known. */
    const answering = () => eventually('an endpoint', async () => (await mine()).find(({ endpoints }) => endpoints.length > 0));
    const endpoint = async () => (await answering()).endpoints[0];
    const urlOf = async (): Promise<string> => {
      const { host, port: at } = (await endpoint()) ?? { host: '127.0.0.1', port };
      return `http://${host}:${at}`;
    };
    const answer = async (path: string): Promise<string> => {
      const url = await urlOf();
      return await eventually(`an answer to ${path}`, async () => (await fetch(`${url}${path}`)).text());
    };
    const ready = async (): Promise<void> => {
      if (world.real) await answer('/');
    };
    /** Waits for an exit, of a workload that stays exited or of one that its runtime restarts. */
    const ended = (of: Runtime = runtime) =>
      eventually('an end', async () => (await mine(of)).find(({ phase, exit }) => exit !== undefined && (phase === 'exited') !== pods));
    const stop = (id: WorkloadId, graceMs = 5000) => runtime.stop(id, { graceMs }, ends.signal);

    test('runs an applied workload, finds it by its labels and shows no drift', async () => {
      const id = await apply(workload);
      const found = await inPhase('running');
      expect(found).toMatchObject({ id, name: workload.name, slot: workload.slot, revision: workload.revision, generation: 7 });
      expect(found.startedAt).toBeGreaterThan(0);
      expect(await endpoint()).toEqual(
        pods ? { host: expect.not.stringMatching(/^127\./), port: workload.port.container } : { host: '127.0.0.1', port },
      );
      await ready();
      const { container } = await inPhase('running');
      expect(container.port).toEqual(workload.port);
      if (container.argv !== undefined) expect(container.argv).toEqual(workload.argv);
      // Additional variables are not drift: images have variables of their own.
      if (container.env !== undefined) expect(container.env).toMatchObject(workload.env);
      if (container.mounts !== undefined) expect(container.mounts).toEqual(workload.mounts);
      if (container.devices !== undefined) expect(container.devices).toEqual(workload.devices);
      const { inPlace } = runtime.traits;
      if (inPlace === undefined) return;
      expect(inPlace.findAltered(workload, await inPhase('running'))).toEqual([]);
      expect(inPlace.isOutdated(workload, await inPhase('running'))).toBe(false);
    });

    test('gives a server its environment and none of the controller’s settings', async () => {
      if (!world.real) return expect(world.real).toBe(false);
      await apply(workload);
      const lines = (await answer('/env')).split('\n');
      expect(lines).toEqual(expect.arrayContaining(['GREETING=a b=c "d"', 'EMPTY=']));
      expect(lines.filter((line) => line.startsWith('SVC_'))).toEqual([]);
    });

    test('publishes a server on loopback only, or gives it its own address', async () => {
      if (!world.real) return expect(world.real).toBe(false);
      await apply(workload);
      expect(await answer('/')).toBe('hello');
      if (pods) return;
      const others = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
      const outside = others.filter((address) => !address.internal && address.family === 'IPv4').map(({ address }) => address);
      for (const address of outside)
        await expect(fetch(`http://${address}:${port}/`, { signal: AbortSignal.timeout(2000) })).rejects.toThrow();
    });

    test('creates one workload if it is applied twice concurrently', async () => {
      const applied = await Promise.all([runtime.apply(workload, ends.signal), runtime.apply(workload, ends.signal)]);
      expect(applied.some((result) => result.ok)).toBe(true);
      const left = await mine();
      expect(left).toHaveLength(1);
      expect(await apply(workload)).toBe(left[0]?.id);
    });

    test('removes a workload that is stopped, and succeeds if it is stopped again', async () => {
      const id = await apply(workload);
      await ready();
      const url = await urlOf();
      expect(await stop(id)).toMatchObject({ ok: true });
      expect(await mine()).toEqual([]);
      expect(await stop(id)).toMatchObject({ ok: true });
      if (world.real) await expect(fetch(url, { signal: AbortSignal.timeout(2000) })).rejects.toThrow();
    });

    test('kills a server that ignores the request to exit after its grace period', async () => {
      const id = await apply(world.workload({ port, args: ['--ignore-term'] }));
      await ready();
      expect(await stop(id, 300)).toMatchObject({ ok: true });
      expect(await mine()).toEqual([]);
    });

    test('reports an exit with its code; the workload stays exited or is restarted by the runtime until it is stopped', async () => {
      const id = await apply(workload);
      await ready();
      await world.exit(await inPhase('running'), 7);
      const found = await ended();
      expect(found).toMatchObject({ id, exit: { code: 7, outOfMemory: false } });
      expect(found.exit?.at).toBeGreaterThan(0);
      if (pods) expect(await answering()).toMatchObject({ id, phase: 'running', exit: found.exit });
      else expect(found.endpoints).toEqual([]);
      expect(await mine()).toHaveLength(1);
      expect(await stop(id)).toMatchObject({ ok: true });
      expect(await mine()).toEqual([]);
    });

    test('starts an exited workload again if it is applied, once its port is free', async () => {
      await apply(workload);
      await ready();
      await world.exit(await inPhase('running'), 3);
      await ended();
      const release = await world.occupy?.(port);
      if (release) expect(await runtime.apply(workload, ends.signal)).toMatchObject({ ok: false, failure: { reason: 'PortTaken' } });
      await release?.();
      const again = await eventually('it starts again', async () => {
        const applied = await runtime.apply(workload, ends.signal);
        return applied.ok ? applied.value : undefined;
      });
      expect(await inPhase('running')).toMatchObject({ id: again });
      await ready();
      expect(await mine()).toHaveLength(1);
    });

    test.each([false, true])('a crash is an exit by a signal, which a new instance need not know (new: %s)', async (anew) => {
      const id = await apply(workload);
      await ready();
      const watcher = anew ? world.reopen() : runtime;
      await world.crash(await inPhase('running', watcher));
      const found = await ended(watcher);
      expect({ id: found.id, code: anew ? 137 : found.exit?.code }).toEqual({ id, code: 137 });
      if (pods) expect(await inPhase('running')).toMatchObject({ id });
    });

    test('no longer reports a workload that was removed from outside, and can apply it again', async () => {
      await apply(workload);
      await ready();
      await world.vanish(await inPhase('running'));
      await eventually('nothing is left', async () => ((await mine()).length === 0 ? true : undefined));
      await eventually('it can be applied anew', async () => ((await runtime.apply(workload, ends.signal)).ok ? true : undefined));
      await inPhase('running');
    });

    test('a new instance finds the same workload and can stop it', async () => {
      const id = await apply(workload);
      await ready();
      const next = world.reopen();
      expect(await inPhase('running', next)).toMatchObject({ id, revision: workload.revision, generation: 7 });
      expect(await apply(workload, next)).toBe(id);
      expect(await next.stop(id, { graceMs: 5000 }, ends.signal)).toMatchObject({ ok: true });
      expect(await mine(next)).toEqual([]);
    });

    test('reports an occupied port and leaves nothing behind', async () => {
      if (world.occupy === undefined) return expect(pods).toBe(true);
      const release = await world.occupy(port);
      const applied = await runtime.apply(workload, ends.signal);
      const message = expect.stringContaining(String(port));
      expect(applied).toMatchObject({ ok: false, failure: { kind: 'retry', reason: 'PortTaken', message } });
      expect(await mine()).toEqual([]);
      await release();
      await apply(workload);
    });

    test('refuses the name of another revision, which continues to run', async () => {
      const id = await apply(workload);
      const other = world.workload({ port: await freePort(), revision: 'ba9876543210' });
      expect(await runtime.apply(other, ends.signal)).toMatchObject({ ok: false, failure: { reason: 'NameTaken' } });
      expect(await inPhase('running')).toMatchObject({ id, revision: workload.revision });
    });

    test('two revisions run side by side under two names', async () => {
      const first = await apply(workload);
      const second = await apply(
        world.workload({ port: await freePort(), revision: 'ba9876543210', name: `${workload.name}--ba9876543210` }),
      );
      expect((await mine()).map((each) => each.id).toSorted()).toEqual([first, second].toSorted());
      expect(await stop(first)).toMatchObject({ ok: true });
      expect((await mine()).map((each) => each.id)).toEqual([second]);
    });

    test('shows an altered workload in the facts, and repairs it where that is possible in place', async () => {
      if (world.alter === undefined) return expect(world.alter).toBeUndefined();
      const { inPlace } = runtime.traits;
      await apply(workload);
      await ready();
      await world.alter(await inPhase('running'));
      const isAltered = (each: ObservedWorkload): boolean =>
        inPlace === undefined
          ? each.container.env !== undefined && each.container.env['GREETING'] !== workload.env['GREETING']
          : inPlace.findAltered(workload, each).length > 0;
      const altered = await eventually('another environment', async () => (await mine()).find(isAltered));
      expect(altered).toMatchObject({ name: workload.name, revision: workload.revision });
      if (inPlace === undefined) return;
      expect(await apply(workload)).toBe(altered.id);
      expect((await mine()).filter(isAltered)).toEqual([]);
      if (!world.real) return;
      await eventually('its own environment', async () => ((await answer('/env')).includes('GREETING=a b=c "d"') ? true : undefined));
    });

    test('stores and returns output, and following ends with the server', async () => {
      if (!world.real) return expect(world.real).toBe(false);
      const id = await apply(workload);
      await ready();
      const read = async (follow: boolean, tail = 100): Promise<string[]> => {
        const lines: LogLine[] = [];
        for await (const line of runtime.logs(id, { tail, follow }, ends.signal)) lines.push(line);
        return lines.map((line) => line.text);
      };
      await eventually('both streams', async () => ((await read(false)).length >= 3 ? true : undefined));
      const all = await read(false);
      expect(all.toSorted()).toEqual(['listening', 'to stderr', 'to stdout']);
      expect(await read(false, 1)).toEqual([all.at(-1)]);
      const following = read(true);
      await world.exit(await inPhase('running'), 0);
      expect((await following).toSorted()).toEqual(['listening', 'to stderr', 'to stdout']);
    });

    test('following output ends when it is cancelled', async () => {
      const id = await apply(workload);
      await ready();
      const given = new AbortController();
      const following = (async () => {
        for await (const line of runtime.logs(id, { tail: 0, follow: true }, given.signal)) void line;
      })();
      await new Promise((resolve) => setTimeout(resolve, 100));
      given.abort();
      await following;
      expect(await inPhase('running')).toMatchObject({ id });
    });

    test('wakes after a change from outside, until the signal aborts', async () => {
      let wakes = 0;
      const watching = new AbortController();
      runtime.changes(() => (wakes += 1), watching.signal);
      await apply(workload);
      await ready();
      const found = await inPhase('running');
      await new Promise((resolve) => setTimeout(resolve, 300));
      const before = wakes;
      await world.crash(found);
      await eventually('a wake', async () => (wakes > before ? true : undefined));
      await ended();
      if (pods) await answering();
      watching.abort();
      await new Promise((resolve) => setTimeout(resolve, 300));
      const after = wakes;
      await stop(found.id);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(wakes).toBe(after);
    });

    test('changes nothing if an action is cancelled before it begins', async () => {
      const given = AbortSignal.abort();
      expect(await runtime.apply(workload, given)).toMatchObject({ ok: false });
      expect(await runtime.observe([], given)).toMatchObject({ ok: false });
      expect(await mine()).toEqual([]);
    });
  });
}
