/** The part of the contract about how long the processes of a workload have computed, which tells a hung server from a busy one. */
import { expect, test } from '@jest/globals';
import { eventually, freePort, type RuntimeWorld } from './runtime-world.ts';

export function describeWorkContract(name: string, createWorld: () => Promise<RuntimeWorld>): void {
  test(`${name} tells how long a workload has computed, as far as it knows, and nothing of one that is gone`, async () => {
    await using world = await open(createWorld);
    const { runtime, patienceMs, real } = world;
    const { signal } = new AbortController();
    const applied = await runtime.apply(world.workload({ port: await freePort() }), signal);
    if (!applied.ok) throw new Error(applied.failure.message);
    const work = async (): Promise<number | undefined> => (await runtime.work?.(applied.value))?.cpuMs;
    const urlOf = async (): Promise<string | undefined> => {
      const facts = await runtime.observe([], signal);
      const [at] = facts.ok ? (facts.value.workloads.find(({ id }) => id === applied.value)?.endpoints ?? []) : [];
      return at === undefined ? undefined : `http://${at.host}:${at.port}/`;
    };
    if (real && runtime.traits.network !== 'pods') {
      const url = await eventually('an endpoint', urlOf, patienceMs);
      await eventually('an answer', async () => (await fetch(url)).text(), patienceMs);
      const before = (await work()) ?? Number.NaN;
      const more = async (): Promise<true | undefined> => {
        for (let count = 0; count < 20; count += 1) await (await fetch(url)).text();
        return ((await work()) ?? 0) > before ? true : undefined;
      };
      await eventually('it has computed', more, patienceMs);
    }
    await runtime.stop(applied.value, { graceMs: 5000 }, signal);
    expect(await work()).toBeUndefined();
  });
}

async function open(createWorld: () => Promise<RuntimeWorld>) {
  const world = await createWorld();
  return { ...world, [Symbol.asyncDispose]: async () => await world.dispose() };
}
