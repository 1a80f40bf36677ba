/** A world whose servers can sleep and count requests, for the tests of both. */
import type { Provider } from '../../src/providers/provider.ts';
import type { RequestCount } from '../../src/providers/provider-servers.ts';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import type { Device, Hardware } from '../../src/schema/status/hardware.ts';
import { createWorld, FAKE_PROVIDER, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

export const PRIMARY = slotName('primary');
export const MINE = slotName('mine');
export const IDLE: SlotDocument = {
  provider: 'gguf',
  model: { default: 'a.gguf' },
  lifecycle: { idleTimeout: '10s', startTimeout: '20s' },
};
const GPU: Device = {
  id: 'gpu0',
  kind: 'gpu',
  vendor: 'amd',
  backends: ['rocm'],
  memory: { totalBytes: 1600, freeBytes: 1600 },
  unified: false,
};
export const HARDWARE: Hardware = {
  source: { kind: 'machine' },
  cpu: { architecture: 'x64', threads: 8 },
  memory: undefined,
  devices: [GPU],
  programs: {},
};

export interface Servers {
  readonly asleep: Set<string>;
  /** Default: it does as it is told. */
  enter?: () => Promise<string | undefined>;
  leave?: () => Promise<string | undefined>;
  hostBytes?: (bytes: number) => number;
  count?: () => RequestCount;
}

export function begin(servers: Servers, options: WorldOptions = {}, document: Partial<SlotDocument> = {}): World {
  const nameAt = (port: number): string => world.runtime.list().find(({ endpoints }) => endpoints[0]?.port === port)?.id ?? '';
  const { hostBytes } = servers;
  const sleep: Provider['sleep'] = {
    appliesTo: () => true,
    ...(hostBytes === undefined ? {} : { hostBytes: (_spec, bytes) => hostBytes(bytes) }),
    async enter({ port }) {
      const problem = await servers.enter?.();
      if (problem === undefined) servers.asleep.add(nameAt(port));
      return problem;
    },
    async leave({ port }) {
      const problem = await servers.leave?.();
      if (problem === undefined) servers.asleep.delete(nameAt(port));
      return problem;
    },
  };
  const provider: Partial<Provider> = {
    sleep,
    async health(endpoint, ...asked) {
      if (servers.asleep.has(nameAt(endpoint.port))) return { kind: 'asleep', message: 'The server sleeps' };
      return await FAKE_PROVIDER.health(endpoint, ...asked);
    },
    ...(servers.count === undefined ? {} : { countRequests: async () => servers.count?.() ?? { count: 0 } }),
    ...options.provider,
  };
  const world: World = createWorld({ ...options, provider });
  for (const model of ['a.gguf', 'b.gguf']) world.setModel(model, 'present');
  world.edit('primary', { ...IDLE, ...document });
  return world;
}
export const calm = (): Servers => ({ asleep: new Set() });
export const ids = (world: World): readonly string[] => world.runtime.list().map(({ id }) => id);
export const sleepingOf = (world: World, name = 'primary') => world.slot(name).status.conditions.find(({ type }) => type === 'Sleeping');
export const actionsOf = (world: World): readonly string[] => world.changes().map((text) => text.split(':')[0] ?? '');
export const explain = (world: World): string => world.slot('primary').explain(world.clock.now());
export const told = (world: World): readonly string[] =>
  world
    .lives()
    .flatMap(({ reports }) => reports)
    .flatMap(({ entries }) => entries.map(({ message }) => message));

export async function fallAsleep(world: World): Promise<string> {
  await world.reach('primary', 'ready');
  await world.clock.until(() => sleepingOf(world)?.status === 'True', 40_000);
  return ids(world)[0] ?? '';
}
