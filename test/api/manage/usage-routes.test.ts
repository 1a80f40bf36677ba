import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { svcctl } from '../../cli/run-svcctl.ts';
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
    'time,caller,label,slot,model,requests,errors,input_tokens,cached_tokens,output_tokens,estimated_requests,queue_seconds,busy_seconds',
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
