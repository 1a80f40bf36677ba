import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createUsageRoute } from '../../../src/api/manage/usage-routes.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { noCounts, type UsageSum } from '../../../src/usage/decide/usage-rows.ts';
import { svcctl } from '../../cli/run-svcctl.ts';
import { startGateway, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';
import { startWorld, type World } from './world.ts';

const CHAT = { model: 'nobody', messages: [{ role: 'user', content: 'secret' }] };
const HOUR = 3_600_000;
let world: World;
let caller = 'anyone';
beforeEach(async () => {
  world = await startWorld({ v1: true, authorize: () => ({ ok: true, caller: { key: caller, identity: 'x', scope: 'admin' } }) });
  world.save(SlotName.parse('primary'), '[model]\ndefault = "a"\n');
  await world.idle();
});
afterEach(() => world.close());

async function ask(key: string): Promise<void> {
  caller = key;
  const headers = { 'content-type': 'application/json' };
  await (await fetch(`${world.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(CHAT) })).text();
}
const read = async (query = ''): Promise<{ readonly status: number; readonly text: string }> => {
  const answer = await fetch(`${world.url}/api/usage${query}`);
  return { status: answer.status, text: await answer.text() };
};
const usage = async (query = '') => JSON.parse((await read(query)).text).usage;

test('GET /api/usage names callers by their labels, and tells nothing of hashes and contents', async () => {
  await world.tokens.change(
    () => new Map([['1a2b3c4d', { label: 'laptop', scope: 'v1-only', created_at: '2026-01-01T00:00:00Z', hash: 'hash-of-it' }]]),
  );
  for (const key of ['token:1a2b3c4d', 'token:1a2b3c4d', 'token:ffffffff', 'user:anna@example.com']) await ask(key);
  const { text } = await read();
  const [labelled, revoked, user] = JSON.parse(text).usage;
  expect(labelled).toMatchObject({ caller: 'token:1a2b3c4d', label: 'laptop', requests: 2, errors: 2, slot: null, time: null });
  expect([revoked, user]).toMatchObject([
    { caller: 'token:ffffffff', label: null },
    { caller: 'user:anna@example.com', label: null },
  ]);
  expect(text).not.toMatch(/secret|hash/);
});

test('GET /api/usage groups by several words, within hours', async () => {
  await ask('local');
  const since = new Date(Date.now() - HOUR).toISOString();
  expect(await usage(`?by=slot,hour&since=${since}`)).toMatchObject([{ slot: '', caller: null, requests: 1, time: expect.any(String) }]);
  const day = `${new Date().toISOString().slice(0, 10)}T00:00:00.000Z`;
  expect(await usage('?by=day,model')).toMatchObject([{ time: day, model: '', requests: 1 }]);
  expect(await usage('?until=2020-01-01')).toEqual([]);
});

test.each(['?by=', '?by=person', '?by=token,', '?since=yesterday', '?since=2027-01-01&until=2026-01-01', '?since=2026-13-01', '?x=1'])(
  'GET /api/usage refuses "%s"',
  async (query) => {
    const { status, text } = await read(query);
    expect([status, JSON.parse(text)]).toMatchObject([400, { error: { code: 'request.invalid' } }]);
  },
);

test('svcctl usage prints a table, JSON and CSV, whatever is in names', async () => {
  for (const key of ['user:\u001b[2Jx', '=HYPERLINK("http://evil.test")', 'user:a,b']) await ask(key);
  const run = async (...args: string[]) => await svcctl(['usage', ...args], { env: { SVCCTL_SERVER: world.url } });
  const table = await run();
  expect(table).toMatchObject({ code: 0, err: '' });
  expect(table.out.split('\n')[0]).toBe('CALLER                          REQUESTS  ERRORS  INPUT  CACHED  OUTPUT  BUSY');
  expect(table.out).not.toContain('\u001b');
  const csv = await run('-o', 'csv', '--since', '1h');
  const [head, ...lines] = csv.out.trimEnd().split('\r\n');
  expect(head).toBe(
    'time,caller,label,slot,model,requests,errors,input_tokens,cached_tokens,output_tokens,estimated_requests,queue_seconds,busy_seconds,audio_seconds,images,energy_wh,loads,evictions',
  );
  expect(lines.map((line) => line.replace(/,,,,.*/, ''))).toEqual([
    `,"'=HYPERLINK(""http://evil.test"")"`,
    expect.stringMatching(/^,user:[^\p{Cc}]*x$/u),
    ',"user:a,b"',
  ]);
  expect(JSON.parse((await run('-o', 'json')).out).usage).toHaveLength(3);
  expect(await run('--since', 'yesterday')).toMatchObject({ code: 64, err: expect.stringContaining('--since') });
  expect(await run('--by', 'person')).toMatchObject({ code: 1, err: expect.stringContaining('separated by commas') });
  expect(await run('--until', '2020-01-01', '--since', '2019-01-01')).toMatchObject({
    code: 0,
    out: '',
    err: expect.stringContaining('No requests'),
  });
});

describe('with prices', () => {
  const by = (currency: string, nanos: number, more: object = {}): UsageSum => ({
    ...noCounts(),
    caller: 'local',
    currency,
    requests: 2,
    input: 10,
    nanos,
    ...more,
  });
  let sums: readonly UsageSum[];
  let service: GatewayFixture;
  beforeEach(async () => {
    const usage = { query: async () => ({ sums, problem: undefined }) };
    service = await startGateway({ routes: [createUsageRoute({ usage, tokens: { list: () => [] }, wallNow: () => Date.now() })] });
  });
  afterEach(async () => await service.close());
  const print = async (...args: string[]) => await svcctl(['usage', ...args], { env: { SVCCTL_SERVER: service.url } });

  test('sums of several currencies are one row, with an amount for each', async () => {
    sums = [by('', 0), by('EUR', 1_234_567_890), by('USD', 5000), by('', 0, { caller: 'user:x', audioMs: 1500, images: 3, loads: 2 })];
    const { usage } = JSON.parse(await (await fetch(`${service.url}/api/usage`)).text());
    expect(usage).toMatchObject([
      {
        caller: 'local',
        requests: 6,
        input_tokens: 30,
        audio_seconds: null,
        images: null,
        cost: [
          { currency: 'EUR', amount: 1.234_568 },
          { currency: 'USD', amount: 0.000_005 },
        ],
      },
      { caller: 'user:x', requests: 2, audio_seconds: 1.5, images: 3, cost: [], loads: 2, evictions: 0 },
    ]);
    const table = await print();
    expect(table.out).toBe(
      [
        'CALLER  REQUESTS  ERRORS  INPUT  CACHED  OUTPUT  BUSY  AUDIO  IMAGES  COST',
        'local   6         0       30     0       0       0.0s                 1.23 EUR + 0.000005 USD',
        'user:x  2         0       10     0       0       0.0s  1.5s   3',
        '',
      ].join('\n'),
    );
    const wide = await print('-o', 'wide');
    expect(wide.out.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      'CALLER REQUESTS ERRORS INPUT CACHED OUTPUT QUEUE BUSY AUDIO IMAGES LOADS COST',
      'local 6 0 30 0 0 0.0s 0.0s 1.23 EUR + 0.000005 USD',
      expect.stringMatching(/^user:x .* 1\.5s 3 2 ?$/),
      '',
    ]);
    expect((await print('-o', 'csv')).out.split('\r\n').map((line) => line.replace(/^(?:[^,]*,){13}/, '…'))).toEqual([
      '…audio_seconds,images,energy_wh,loads,evictions,cost_EUR,cost_USD',
      '…,,,0,0,1.234568,0.000005',
      '…1.5,3,,2,0,,',
      '',
    ]);
  });

  test('no currency that Prometheus has reaches a terminal as a command', async () => {
    sums = [by('\u001b[2JXTS', 1_000_000_000)];
    expect((await print()).out).toMatch(/ 1\.00 XTS\n$/);
    expect((await print('-o', 'csv')).out).not.toContain('\u001b');
  });

  test('columns that say nothing are left out, and guesses are marked', async () => {
    sums = [by('EUR', 20_000_000, { estimated: 1 })];
    expect((await print()).out.split('\n')[0]).toMatch(/BUSY +COST$/);
    expect((await print()).out).toMatch(/~0\.02 EUR\n$/);
  });
});
