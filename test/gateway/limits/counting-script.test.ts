/** What the server computes, on a real one and on the double of other suites: both do the same. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'iovalkey';
import { COUNTING_SCRIPT, parseAnswer, type CountAnswer, type CountReport } from '../../../src/gateway/limits/counting-script.ts';
import { createInMemoryCounts } from '../../support/valkey/in-memory-counts.ts';
import { describeWithValkey, startValkey, type ValkeyServer } from '../../support/valkey/valkey-server.ts';

type Count = (key: string, holder: string, seq: string, report: string) => Promise<unknown>;

const LONG = 60_000;
const NONE = [-1, -1, -1, -1];
const reportOf = (more: Partial<CountReport>): CountReport => ({
  counts: [[], [], [], []],
  need: [0, 0, 0, 0],
  limits: NONE,
  keepMs: [LONG, LONG, LONG, LONG],
  part: 0,
  ...more,
});
const requests = (limit: number, need: number, more: Partial<CountReport> = {}): CountReport =>
  reportOf({ limits: [limit, -1, -1, -1], need: [need, 0, 0, 0], ...more });

/** `goBack`: sets the clock of the server back by an hour, as far as this key is concerned. */
function contract(open: () => Count, goBack: (key: string) => Promise<void>): void {
  let keys = 0;
  let seq = 0;
  const asking = () => {
    keys += 1;
    const key = `key ${keys}`;
    const ask = async (holder: string, report: CountReport, at = (seq += 1)): Promise<CountAnswer> =>
      parseAnswer(await open()(key, holder, String(at), JSON.stringify(report)));
    return Object.assign(ask, { key });
  };

  test('grants up to the limit over all gateways, and names the limit that does not allow more', async () => {
    const ask = asking();
    expect(await ask('a', requests(3, 2))).toEqual({ over: 0, extra: [0, 0, 0, 0], wasKnown: false, others: [] });
    expect(await ask('b', requests(3, 1))).toMatchObject({ over: 0, others: [{ counts: [[2, LONG], [], [], []] }] });
    expect(await ask('b', requests(3, 1, { counts: [[1, LONG], [], [], []] }))).toMatchObject({ over: 1, wasKnown: true });
    expect(await ask('c', reportOf({ limits: [9, 9, 5, 9], need: [1, 9, 6, 1] }))).toMatchObject({ over: 3 });
    expect(await ask('c', reportOf({ limits: [9, 9, 9, 0], need: [1, 1, 1, 1] }))).toMatchObject({ over: 4 });
  });

  test('a report replaces the one before it: what it no longer has is free', async () => {
    const ask = asking();
    await ask('a', requests(4, 4));
    expect(await ask('b', requests(4, 1))).toMatchObject({ over: 1 });
    await ask('a', requests(4, 0, { counts: [[3, LONG], [], [], []] }));
    expect(await ask('b', requests(4, 1))).toMatchObject({ over: 0 });
  });

  test('what is refused holds nothing', async () => {
    const ask = asking();
    await ask('a', requests(4, 3));
    expect(await ask('b', requests(4, 2, { part: 1 }))).toMatchObject({ over: 1, extra: [0, 0, 0, 0] });
    expect(await ask('a', requests(4, 1, { counts: [[3, LONG], [], [], []] }))).toMatchObject({ over: 0, others: [] });
  });

  test('grants a part of what is free besides, less to each where several use it', async () => {
    const ask = asking();
    expect(await ask('a', requests(101, 1, { part: 1 / 4 }))).toMatchObject({ over: 0, extra: [25, 0, 0, 0] });
    // 74 are free after it, for two gateways.
    expect(await ask('b', requests(101, 1, { part: 1 / 4 }))).toMatchObject({ over: 0, extra: [9, 0, 0, 0] });
    expect(await ask('b', requests(20, 0, { part: 1 / 4 }))).toMatchObject({ over: 0, extra: [0, 0, 0, 0] });
  });

  test('an amount counts as long as its report said', async () => {
    const ask = asking();
    await ask('a', requests(4, 1, { counts: [[2, 150, 1, LONG], [], [], []], keepMs: [150, 0, 0, 0] }));
    expect(await ask('b', requests(4, 1))).toMatchObject({ over: 1 });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await ask('b', requests(4, 3))).toMatchObject({ over: 0, others: [expect.objectContaining({ agoMs: expect.any(Number) })] });
    await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test('whoever has nothing that counts is no longer listed', async () => {
    const ask = asking();
    await ask('a', requests(4, 1, { keepMs: [30, 0, 0, 0] }));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(await ask('b', requests(4, 1))).toMatchObject({ others: [] });
    expect(await ask('a', requests(4, 1))).toMatchObject({ wasKnown: false });
  });

  test('a report that comes late, or again, changes nothing', async () => {
    const ask = asking();
    seq += 10;
    await ask('a', requests(4, 4), seq);
    await expect(ask('a', requests(4, 0), seq)).rejects.toThrow('a later report has come before');
    await expect(ask('a', requests(4, 0), seq - 5)).rejects.toThrow('a later report has come before');
    expect(await ask('b', requests(4, 1), seq + 1)).toMatchObject({ over: 1 });
  });

  test('a clock that goes back keeps nothing longer than its report said', async () => {
    const ask = asking();
    await ask('a', requests(4, 4, { keepMs: [300, 0, 0, 0] }));
    await goBack(ask.key);
    const refused = await ask('b', requests(4, 1));
    expect(refused).toMatchObject({ over: 1, others: [expect.objectContaining({ agoMs: 0 })] });
    await new Promise((resolve) => setTimeout(resolve, 350));
    expect(await ask('b', requests(4, 1))).toMatchObject({ over: 0, others: [] });
  });

  test('large amounts stay exact', async () => {
    const ask = asking();
    const most = 1_000_000_000_000;
    await ask('a', reportOf({ limits: [-1, -1, most, -1], need: [0, 0, most - 1, 0] }));
    expect(await ask('b', reportOf({ limits: [-1, -1, most, -1], need: [0, 0, 2, 0] }))).toMatchObject({ over: 3 });
    expect(await ask('b', reportOf({ limits: [-1, -1, most, -1], need: [0, 0, 1, 0] }))).toMatchObject({ over: 0 });
  });
}

describe('The double', () => {
  let offsetMs = 0;
  const { count } = createInMemoryCounts(() => performance.now() + offsetMs);
  contract(
    () => count,
    async () => void (offsetMs -= 3_600_000),
  );
});

describeWithValkey('A real server', () => {
  let server: ValkeyServer;
  let client: Redis;
  beforeAll(async () => {
    server = await startValkey();
    client = new Redis(server.url);
  }, 30_000);
  afterAll(async () => {
    client?.disconnect();
    await server?.dispose();
  });
  contract(
    () =>
      async (...args) =>
        await client.eval(COUNTING_SCRIPT, 1, ...args),
    // Nobody sets the clock of this machine.
    async (key) => {
      const entries = await client.hgetall(key);
      for (const [holder, text] of Object.entries(entries)) {
        const entry: { at: number } = JSON.parse(text);
        await client.hset(key, holder, JSON.stringify({ ...entry, at: entry.at + 3_600_000 }));
      }
    },
  );

  test('keys go away, a day and a little after the last report', async () => {
    await client.eval(COUNTING_SCRIPT, 1, 'ttl', 'a', '1', JSON.stringify(requests(4, 1)));
    const seconds = await client.ttl('ttl');
    expect([seconds > 24 * 3600 + 24 * 60, seconds <= 25 * 3600]).toEqual([true, true]);
  });
});
