/** `svcctl requests` against a real gateway. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startWorld, type World } from '../api/manage/world.ts';
import { boardView } from '../gateway/support/board-fixture.ts';
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
