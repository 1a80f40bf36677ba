/** How many requests a reflector sends to a healthy or failing server. Time runs several hundred times as fast as usual. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReflector } from '../../../src/cluster/client/reflector.ts';
import type { Reflector } from '../../../src/cluster/client/ports.ts';
import { CONFIG_MAPS } from '../../../src/cluster/client/decide/resource-path.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { createRandom } from '../../support/simulation/seeded-random.ts';
import { eventually } from '../../support/eventually.ts';
import { createFastClock } from '../../support/kube/fast-clock.ts';

const FACTOR = 200;
/** Ten minutes of the reflector. */
const TEN_MINUTES_MS = 600_000 / FACTOR;

let own: AbortController;

beforeEach(() => {
  own = new AbortController();
});
afterEach(() => own.abort());

async function startCopy(fake: FakeKubeApi, relistMs: number, factor: number): Promise<Reflector> {
  const { next: random } = createRandom(7);
  const copy = createReflector({ api: await connectToFake(fake), type: CONFIG_MAPS, clock: createFastClock(factor), random, relistMs });
  copy.start(own.signal);
  await eventually('the watch is open', () => fake.watches.count() === 1);
  return copy;
}

const often =
  (act: (fake: FakeKubeApi) => void) =>
  (fake: FakeKubeApi): (() => void) => {
    const timer = setInterval(() => act(fake), 1);
    return () => clearInterval(timer);
  };

/** Each injects a fault and returns a function that ends it. */
const FAULTS: Readonly<Record<string, (fake: FakeKubeApi) => () => void>> = {
  'every response is 500': (fake) => fake.faults.answer({}, { status: 500 }),
  'every response is 429': (fake) => fake.faults.answer({}, { status: 429 }),
  'every response is 403': (fake) => fake.faults.answer({}, { status: 403 }),
  'every response is 401': (fake) => fake.faults.answer({}, { status: 401 }),
  'every connection breaks': (fake) => fake.faults.answer({}, { status: 'cut' }),
  'every watch fails with 410, every list succeeds': (fake) => fake.faults.answer({ verb: 'watch' }, { status: 410, reason: 'Expired' }),
  'every watch ends at once': often((fake) => fake.watches.end()),
  'every watch ends with an expired event': often((fake) => fake.watches.expire()),
  'every watch connection breaks': often((fake) => fake.watches.drop()),
};

/** Returns the number of requests in ten minutes of this fault. Afterwards, the copy must be current again soon. */
async function requestsDuring(inject: (fake: FakeKubeApi) => () => void): Promise<number> {
  const fake = await startFakeKubeApi();
  try {
    const copy = await startCopy(fake, 3_600_000, FACTOR);
    fake.faults.clearLog();
    const stop = inject(fake);
    fake.watches.drop();
    await sleep(TEN_MINUTES_MS);
    const requests = fake.faults.count();
    stop();
    fake.put(CONFIG_MAPS, 'default', { metadata: { name: 'after' } });
    await eventually('the copy is current again', () => copy.items().has('after') && copy.health().kind === 'current', 3000);
    return requests;
  } finally {
    await fake.close();
  }
}

describe('createReflector()', () => {
  test('sends few requests whatever the server does, but keeps trying', async () => {
    const counts = await Promise.all(Object.entries(FAULTS).map(async ([name, inject]) => [name, await requestsDuring(inject)] as const));
    // At most 15 s between two attempts, half of it on average: about 80 in ten minutes, each with at most a list and a watch.
    const wrong = counts.filter(([, count]) => count < 20 || count > 200);
    expect(wrong).toEqual([]);
  });

  test('waits as long as the Retry-After header says', async () => {
    const fake = await startFakeKubeApi();
    fake.faults.answer({ verb: 'list' }, { status: 429, retryAfterSeconds: 1 }, 1);
    const copy = createReflector({ api: await connectToFake(fake), type: CONFIG_MAPS, random: () => 0 });
    copy.start(own.signal);
    await eventually('the first list', () => copy.health().kind === 'current');
    const [first, second, ...more] = fake.faults.requests.filter(({ verb }) => verb === 'list').map(({ at }) => at);
    expect(more).toEqual([]);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(950);
    own.abort();
    await fake.close();
  });

  test('lists every ten minutes when idle, and watches for five to ten minutes', async () => {
    const fake = await startFakeKubeApi();
    await startCopy(fake, 600_000, 1000);
    await sleep((3.5 * 600_000) / 1000);
    expect(fake.faults.count({ verb: 'list' })).toBeGreaterThanOrEqual(4);
    expect(fake.faults.count({ verb: 'list' })).toBeLessThanOrEqual(5);
    expect(fake.faults.count({ verb: 'watch' })).toBeLessThanOrEqual(12);
    own.abort();
    await fake.close();
  });
});
