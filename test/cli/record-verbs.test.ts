/** `svcctl requests` and `svcctl audit` against a real gateway. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startWorld, type World } from '../api/manage/world.ts';
import { boardView, PARK } from '../gateway/support/board-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startSvcctl, svcctl } from './run-svcctl.ts';

let world: World;
let upstream: FakeUpstream;
beforeAll(async () => {
  const caller = { key: 'token:1a2b3c4d', identity: 'laptop', scope: 'admin' } as const;
  world = await startWorld({ v1: true, authorize: () => ({ ok: true, caller }) });
  upstream = await startUpstream();
});
afterAll(async () => {
  await world.close();
  await upstream.kill();
});

const env = (): Readonly<Record<string, string>> => ({ SVCCTL_SERVER: world.url });
const run = async (...args: readonly string[]) => await svcctl(args, { env: env() });

async function chat(model: string, id: string): Promise<void> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] });
  const headers = { 'content-type': 'application/json', 'x-request-id': id };
  await (await fetch(`${world.url}/v1/chat/completions`, { method: 'POST', headers, body })).text();
}

describe('svcctl requests', () => {
  test('says that there were none', async () => {
    expect(await run('requests')).toEqual({ code: 0, out: '', err: 'No such requests since this gateway started\n' });
  });

  test('lists requests, the newest at the end, and filters them', async () => {
    world.board.publish(
      boardView(world.board.current().version + 1, [{ name: 'primary', targets: [{ workload: 'w', port: upstream.port }] }]),
    );
    await chat('primary', 'one');
    await chat('nobody', 'two');
    const { out, err } = await run('requests');
    expect(err).toBe('');
    const [head, first, second] = out.split('\n').map((line) => line.split(/ {2,}/));
    expect(head?.slice(0, 5)).toEqual(['ENDED', 'CALLER', 'SLOT', 'STATUS', 'SECONDS']);
    expect(first?.slice(1, 4)).toEqual(['token:1a2b3c4d', 'primary', '200']);
    expect(second?.slice(1, 4)).toEqual(['token:1a2b3c4d', '-', 'model.not_found']);
    expect((await run('requests', '-o', 'name')).out).toBe('request/one\nrequest/two\n');
    expect((await run('requests', '-o', 'name', '--failed')).out).toBe('request/two\n');
    expect((await run('requests', '-o', 'name', '--slot', 'primary')).out).toBe('request/one\n');
    expect((await run('requests', '-o', 'name', '--limit', '1')).out).toBe('request/two\n');
    expect((await run('requests', '-o', 'name', '--caller', 'user:anna')).out).toBe('');
    expect(JSON.parse((await run('requests', '-o', 'json', '--slow')).out)).toEqual({ requests: [] });
    expect(await run('requests', '--limit', '0')).toMatchObject({ code: 64 });
  });

  test('--follow prints each request once, under one head', async () => {
    const child = startSvcctl(['requests', '--follow', '-o', 'wide'], { env: env() });
    let out = '';
    const ended = new Promise((resolve) => child.once('close', resolve));
    const sent: Promise<void>[] = [];
    await new Promise<void>((resolve) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        out += chunk.toString();
        if (out.includes(' two ') && sent.length === 0) sent.push(chat('primary', 'three'));
        if (out.includes(' three ') && sent.length === 1) sent.push(chat('primary', 'four'));
        if (out.includes(' four ')) resolve();
      });
    });
    child.kill('SIGTERM');
    await ended;
    await Promise.all(sent);
    const ids = out.split('\n').flatMap((line) => / (ID|one|two|three|four) /.exec(line)?.[1] ?? []);
    expect(ids).toEqual(['ID', 'one', 'two', 'three', 'four']);
  });
});

describe('svcctl requests --in-flight and --cancel', () => {
  test('list what waits, and end it by its id', async () => {
    expect(await run('requests', '--in-flight')).toEqual({ code: 0, out: '', err: 'No requests in flight\n' });
    world.board.publish(boardView(world.board.current().version + 1, [{ name: 'primary', admission: PARK }]));
    const asked = chat('primary', 'later');
    await eventually('it waits', () => world.parked() === 1);
    const { out } = await run('requests', '--in-flight');
    const [head, line] = out.split('\n').map((each) => each.split(/ {2,}/));
    expect(head).toEqual(['ID', 'CALLER', 'SLOT', 'STATE', 'SECONDS']);
    expect(line?.slice(0, 4)).toEqual(['later', 'token:1a2b3c4d', 'primary', 'waiting']);
    expect((await run('requests', '--in-flight', '-o', 'name')).out).toBe('request/later\n');
    expect(await run('requests', '--cancel', 'later')).toEqual({ code: 0, out: '', err: 'Request "later" is cancelled\n' });
    await asked;
    expect(await run('requests', '--cancel', 'later')).toMatchObject({ code: 1, err: expect.stringContaining('it may have ended') });
  });
});

describe('svcctl audit', () => {
  const change = (at: string, who: string, message: string): void =>
    world.changes.add({ at, who, caller: `user:${who}`, scope: 'admin', address: '10.0.0.7', request_id: 'r1', slot: null, message });

  test('says that there were no changes', async () => {
    expect(await run('audit')).toEqual({ code: 0, out: '', err: 'No such changes\n' });
  });

  test('lists who changed what, the newest at the end, since a time and by somebody', async () => {
    const [old, late] = [new Date(Date.now() - 10 * 86_400_000).toISOString(), new Date().toISOString()];
    change(old, 'anna', 'deleted the slot "old"');
    change(late, 'ben', 'created the slot "new"');
    const did = async (...args: readonly string[]) => [...(await run('audit', ...args)).out.matchAll(/(?:deleted|created) .*/g)].flat();
    expect((await run('audit', '-o', 'wide')).out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['WHEN', 'WHO', 'CALLER', 'ADDRESS', 'REQUEST', 'DID'],
      [old, 'anna', 'user:anna', '10.0.0.7', 'r1', 'deleted the slot "old"'],
      [late, 'ben', 'user:ben', '10.0.0.7', 'r1', 'created the slot "new"'],
      [''],
    ]);
    expect(await did('--since', '7d')).toEqual(['created the slot "new"']);
    expect(await did('--since', old)).toHaveLength(2);
    expect(await did('--by', 'anna')).toEqual(['deleted the slot "old"']);
    expect(await did('--by', 'user:ben')).toEqual(['created the slot "new"']);
    expect(await did('--limit', '1')).toEqual(['created the slot "new"']);
    expect(JSON.parse((await run('audit', '-o', 'json', '--by', 'ben')).out)).toMatchObject({ changes: [{ who: 'ben' }] });
  });

  test.each([
    ['--since', 'yesterday'],
    ['--limit', '1001'],
  ])('refuses %s %s', async (flag, value) => {
    expect(await run('audit', flag, value)).toMatchObject({ code: 64 });
  });
});
