/** The meter with sensors and a clock of the test: each request gets its part of what was measured, and nothing more. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { SensorReading } from '../../src/schema/status/hardware.ts';
import { devicesOf } from '../../src/usage/decide/share-energy.ts';
import { HOUR_MS, type UsageRow } from '../../src/usage/decide/usage-rows.ts';
import { createEnergyMeter } from '../../src/usage/energy-meter.ts';
import { slotName } from '../gateway/support/board-fixture.ts';

const SLOTS: Readonly<Record<string, { readonly provider: string; readonly backend: string }>> = {
  primary: { provider: 'gguf', backend: 'cuda' },
  embed: { provider: 'gguf', backend: 'cpu' },
  far: { provider: 'remote', backend: 'cpu' },
};
const IDLE = { host: 0, gpu: 0 };

let time: number;
/** What the devices take at present, and what they have taken. Undefined: there is no such sensor. */
let watts: { host: number | undefined; gpu: number | undefined };
let taken: { host: number; gpu: number };
let inFlight: { host: number; gpu: number };
let reads: number;
let timer: { readonly at: number; readonly callback: () => void } | undefined;
let kept: UsageRow[];
let meter: ReturnType<typeof createEnergyMeter>;
beforeEach(() => {
  time = 100_000;
  watts = { host: 50, gpu: 200 };
  taken = { host: 0, gpu: 0 };
  inFlight = { ...IDLE };
  reads = 0;
  timer = undefined;
  kept = [];
  meter = createEnergyMeter({
    async read() {
      reads += 1;
      return (['host', 'gpu'] as const).flatMap((device): SensorReading[] =>
        watts[device] === undefined ? [] : [{ source: device, device, at: time, energyUj: Math.round(taken[device] * 1000) }],
      );
    },
    now: () => time,
    wallNow: () => 7 * HOUR_MS,
    factsOf: () => ({ model: 'fox' }),
    at(at, callback) {
      const own = { at, callback };
      timer = own;
      return () => void (timer = timer === own ? undefined : timer);
    },
    devicesOf: (slot) => (SLOTS[slot] === undefined ? [] : devicesOf(SLOTS[slot])),
    load: () => ({ inFlight: { ...inFlight }, usesCuda: true }),
    keep: (rows) => void kept.push(...rows),
  });
});

const settled = async (): Promise<void> => await new Promise((resolve) => void setImmediate(resolve));

/** Lets time pass, with the timers in it. */
async function pass(ms: number): Promise<void> {
  const end = time + ms;
  await settled();
  while (timer !== undefined && timer.at <= end) {
    const { at, callback } = timer;
    timer = undefined;
    move(at);
    callback();
    await settled();
  }
  move(end);
}

function move(to: number): void {
  for (const device of ['host', 'gpu'] as const) taken[device] += (watts[device] ?? 0) * (to - time);
  time = to;
}

const end = (slot: string, seconds: number, caller = 'local', more: object = {}): void =>
  meter.note({ slot: slotName(slot), caller, route: '/v1/x', status: 200, seconds, ...more });
/** In joules, by caller. */
const joules = (caller = 'local'): number =>
  kept.filter((row) => row.caller === caller).reduce((sum, { milliJoules }) => sum + milliJoules, 0) / 1000;

async function request(slot: string, ms: number, caller?: string): Promise<void> {
  for (const device of devicesOf(SLOTS[slot] ?? { provider: '', backend: '' })) inFlight[device] += 1;
  await pass(ms);
  for (const device of devicesOf(SLOTS[slot] ?? { provider: '', backend: '' })) inFlight[device] -= 1;
  end(slot, ms / 1000, caller);
}

describe('a request', () => {
  test('gets what the machine used while it ran, over many readings', async () => {
    meter.begin();
    await settled();
    await request('primary', 60_000);
    await pass(20_000);
    expect(joules()).toBeCloseTo(60 * 250, 0);
    expect(kept[0]).toMatchObject({ hour: 7, slot: 'primary', model: 'fox', requests: 0, busyMs: 0 });
  });

  test('on the CPU gets nothing of a GPU', async () => {
    meter.begin();
    await settled();
    await request('embed', 30_000);
    await pass(20_000);
    expect(joules()).toBeCloseTo(30 * 50, 0);
  });

  test('to another machine uses nothing of this one', async () => {
    meter.begin();
    await request('far', 30_000);
    await pass(20_000);
    expect(kept).toEqual([]);
  });

  test('does not get what the machine uses at rest', async () => {
    meter.begin();
    await settled();
    await request('primary', 9000);
    watts = { host: 10, gpu: 20 };
    await pass(20_000);
    const before = joules();
    watts = { host: 50, gpu: 200 };
    meter.begin();
    await settled();
    await request('primary', 1000);
    watts = { host: 10, gpu: 20 };
    await pass(20_000);
    expect(joules() - before).toBeCloseTo(250, 0);
  });

  test('shares with those that ran at the same time, by the time that each ran', async () => {
    inFlight = { host: 2, gpu: 2 };
    meter.begin();
    await settled();
    await pass(12_000);
    inFlight = { host: 1, gpu: 1 };
    end('primary', 12, 'token:a');
    await pass(12_000);
    inFlight = { ...IDLE };
    end('primary', 24, 'token:b');
    await pass(20_000);
    expect(joules('token:a')).toBeCloseTo(12 * 125, 0);
    expect(joules('token:b')).toBeCloseTo(12 * 125 + 12 * 250, 0);
  });

  test('that waited gets nothing for that time', async () => {
    meter.begin();
    await settled();
    await pass(1000);
    inFlight = { host: 1, gpu: 1 };
    await pass(1000);
    inFlight = { ...IDLE };
    end('primary', 2, 'local', { parkedSeconds: 1 });
    await pass(20_000);
    expect(joules()).toBeCloseTo(250, 0);
  });

  test('that ends while the service stops keeps what was measured', async () => {
    meter.begin();
    await settled();
    inFlight = { host: 1, gpu: 1 };
    await pass(30_500);
    end('primary', 30.5);
    meter.close();
    expect(joules()).toBeCloseTo(30 * 250, 0);
    meter.begin();
    await settled();
    expect(timer).toBeUndefined();
  });

  test.each([Number.NaN, -5, 1e9])('of %d seconds spoils no sum', async (seconds) => {
    meter.begin();
    await settled();
    inFlight = { host: 1, gpu: 1 };
    await pass(6000);
    inFlight = { ...IDLE };
    end('primary', seconds);
    await pass(20_000);
    expect(joules()).toBeLessThanOrEqual(26 * 250);
    expect(kept.every(({ milliJoules }) => Number.isSafeInteger(milliJoules) && milliJoules >= 0)).toBe(true);
  });
});

test('no more is attributed than was measured, whatever the requests were', async () => {
  let seed = 7;
  const random = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most;
  meter.begin();
  await settled();
  const running: { readonly since: number; readonly slot: string }[] = [];
  for (let step = 0; step < 2000; step += 1) {
    const slot = random(2) === 0 ? 'primary' : 'embed';
    if (random(2) === 0) running.push({ since: time, slot });
    else if (running.length > 0) {
      const [{ since, slot: own } = { since: time, slot: 'far' }] = running.splice(random(running.length), 1);
      inFlight = { host: running.length, gpu: running.filter((each) => each.slot === 'primary').length };
      end(own, (time - since) / 1000);
    }
    inFlight = { host: running.length, gpu: running.filter((each) => each.slot === 'primary').length };
    watts = { host: 10 + random(90), gpu: 20 + random(400) };
    await pass(random(4000));
  }
  for (const { since, slot } of running) end(slot, (time - since) / 1000);
  inFlight = { ...IDLE };
  await pass(20_000);
  const all = (taken.host + taken.gpu) / 1000;
  expect(joules()).toBeLessThan(all * 1.02);
  expect(joules()).toBeGreaterThan(all * 0.9);
});

describe('sensors', () => {
  test('are read only while something is served', async () => {
    await pass(60_000);
    expect(reads).toBe(0);
    meter.begin();
    meter.begin();
    await settled();
    expect(reads).toBe(1);
    await request('primary', 30_000);
    await pass(60_000);
    expect([reads, timer]).toEqual([13, undefined]);
    await pass(60_000);
    expect(reads).toBe(13);
  });

  test('are begun by a request too that the board did not show', async () => {
    end('primary', 0.1);
    await settled();
    expect(reads).toBe(1);
  });

  test('that vanish leave what the others tell, and come back', async () => {
    meter.begin();
    await settled();
    inFlight = { host: 1, gpu: 1 };
    await pass(9000);
    watts = { host: 50, gpu: undefined };
    await pass(9000);
    watts = { host: 50, gpu: 200 };
    await pass(9000);
    inFlight = { ...IDLE };
    end('primary', 27);
    await pass(20_000);
    expect(joules()).toBeGreaterThan(27 * 50 + 14 * 200);
    expect(joules()).toBeLessThan(27 * 50 + 19 * 200);
  });

  test('that are not there are looked for a minute later, and requests are not counted', async () => {
    watts = { host: undefined, gpu: undefined };
    meter.begin();
    await request('primary', 30_000);
    meter.begin();
    await settled();
    expect([reads, timer, kept]).toEqual([1, undefined, []]);
    await pass(31_000);
    meter.begin();
    await settled();
    expect(reads).toBe(2);
  });
});
