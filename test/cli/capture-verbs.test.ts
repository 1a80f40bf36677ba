/** `svcctl capture`, and what other verbs say while a capture runs, against a real gateway. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { openCaptures } from '../support/open-captures.ts';
import { svcctl } from './run-svcctl.ts';

let world: World;
let files: Awaited<ReturnType<typeof openCaptures>>;
let dir: string;
beforeAll(async () => {
  files = await openCaptures();
  world = await startWorld({ captures: files.open() });
  dir = await mkdtemp(join(tmpdir(), 'svc-capture-'));
  world.save(SlotName.parse('primary'), '[model]\ndefault = "demo-fox"\n');
  await world.idle();
});
afterAll(async () => {
  await world.close();
  await files.remove();
  await rm(dir, { recursive: true });
});

const run = async (args: string, input?: string) =>
  await svcctl(args.split(' '), { env: { SVCCTL_SERVER: world.url }, ...(input === undefined ? {} : { input }) });

describe('svcctl capture', () => {
  test('starts a capture, lists it, reads it with the key only, and deletes it', async () => {
    expect(await run('capture list')).toMatchObject({ code: 0, out: '', err: expect.stringContaining('No captures found') });
    const started = await run('capture start --slot primary --requests 3 --for 2m');
    const [, id = ''] = /capture show ([0-9a-f]{16}) /.exec(started.err) ?? [];
    expect(started).toMatchObject({ code: 0, out: expect.stringMatching(/^[\w-]{43}\n$/), err: expect.stringContaining('shown once') });

    const recorded = { code: 0, err: expect.stringContaining('recorded by a capture: "svcctl capture list"') };
    expect(await run('get slots')).toMatchObject(recorded);
    expect((await run('capture list')).out).toMatch(new RegExp(`^ID .*\\n${id} +any +primary +on +0 `));
    expect(await run('capture list -o name')).toMatchObject({ out: `capture/${id}\n` });

    const early = await run(`capture show ${id}`, started.out);
    expect(early).toMatchObject({ code: 1, out: '', err: expect.stringContaining('It has no end: the capture still runs') });
    expect(await run(`capture stop ${id}`)).toMatchObject({ code: 0, out: `capture/${id} stopped after 0 requests\n` });
    expect(await run('get slots')).toMatchObject({ code: 0, err: '' });

    const file = join(dir, 'key');
    await writeFile(file, started.out);
    expect(await run(`capture show ${id} --key-file ${file}`)).toEqual({
      code: 0,
      out: '',
      err: 'The capture has ended: it was stopped\n',
    });
    const other = await run(`capture show ${id} --key-file -`, `${'A'.repeat(43)}\n`);
    expect(other).toMatchObject({ code: 1, out: '', err: expect.stringContaining('the key is of another capture') });
    expect(await run(`capture delete ${id}`)).toMatchObject({ code: 0, out: `capture/${id} deleted\n` });
    expect(await run(`capture show ${id} --key-file ${file}`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('There is no capture'),
    });
  });

  test('-o json has the key and the id', async () => {
    const { id, key, caller } = JSON.parse((await run('capture start --caller anyone -o json')).out);
    expect([id, key, caller]).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/), expect.stringMatching(/^[\w-]{43}$/), 'anyone']);
    expect(await run(`capture delete ${id}`)).toMatchObject({ code: 0 });
  });

  test.each([
    ['capture start', 64, 'Name whose requests'],
    ['capture start --slot primary --for soon', 64, 'Write a duration'],
    ['capture start --slot primary --requests many', 64, 'Use a whole number'],
    ['capture start --slot primary --requests 0', 1, 'requests'],
    ['capture start --slot primary --requests 99999', 1, '1000'],
    ['capture start --slot primary --for 2h', 1, '3600'],
    ['capture start --slot nobody', 1, 'There is no slot "nobody"'],
    ['capture start --caller laptop', 1, 'Authentication is off'],
    ['capture show 0123456789abcdef --key-file DIR', 1, 'Could not read the key'],
    ['capture show 0123456789abcdef --key-file DIR/none', 1, 'Could not read the key'],
    ['capture show 0123456789abcdef', 64, 'The key is malformed'],
    ['capture stop 0123456789abcdef', 1, 'There is no capture "0123456789abcdef"'],
    ['capture delete ../other', 1, 'There is no capture'],
  ])('refuses "svcctl %s"', async (args, code, message) => {
    expect(await run(args.replace('DIR', dir), 'no key')).toMatchObject({ code, out: '', err: expect.stringContaining(message) });
  });
});
