import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Authorize } from '../../../src/auth/check-token.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';
import { openProfiles, type WorldProfiles } from './world-profiles.ts';

const PRIMARY = SlotName.parse('primary');
const EMBED = SlotName.parse('embed');
const A = '# mine\n[model]\ndefault = "a"\n[env]\nHF_TOKEN = "hunter2"\n';
const E = '[model]\ndefault = "e"\n';
let world: World;
let profiles: WorldProfiles;
let decide: Authorize = () => ({ ok: true });

beforeEach(async () => {
  decide = () => ({ ok: true, caller: { key: 'caller', identity: 'anna', scope: 'admin' } });
  world = await startWorld({ authorize: (access, req) => decide(access, req) });
  profiles = await openProfiles(world);
  world.profiles = profiles.store;
  world.save(PRIMARY, A);
  world.save(EMBED, E);
  await world.idle();
});
afterEach(async () => {
  await world.close();
  await profiles.remove();
});

async function send(
  method: string,
  path: string,
  { body, headers = {} }: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
) {
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(world.url + path, {
    method,
    headers: { ...content, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, etag: response.headers.get('etag'), body: text === '' ? undefined : JSON.parse(text) };
}
const apply = async (name: string, options: Parameters<typeof send>[2] = {}) =>
  await send('POST', `/api/profiles/${name}/apply`, { body: {}, ...options });
const textOf = (name: SlotName) => world.slots.texts.get(name);

describe('/api/profiles', () => {
  test('saves the present slots, shows which profile is in force, and switches with the plan of the controller', async () => {
    expect(await send('PUT', '/api/profiles/coding')).toMatchObject({ status: 201, body: { name: 'coding', active: true } });
    world.save(PRIMARY, A.replace('"a"', '"b"'));
    world.slots.texts.delete(EMBED);
    world.save(SlotName.parse('stt'), '[model]\ndefault = "s"\n');
    expect((await send('GET', '/api/profiles')).body).toEqual({
      profiles: [
        {
          name: 'coding',
          active: false,
          problems: [],
          slots: [
            { name: 'embed', result: 'created' },
            { name: 'primary', result: 'updated' },
            { name: 'stt', result: 'disabled' },
          ],
        },
      ],
      problems: [],
    });
    const dry = await apply('coding', { body: { dry_run: true } });
    expect(dry).toMatchObject({
      status: 200,
      body: { dry_run: true, name: 'coding', plan: { text: expect.stringContaining('apply "primary"') } },
    });
    expect(dry.body.plan.changes.map(({ slot }: { readonly slot: string }) => slot)).toEqual(['embed', 'primary', 'stt']);
    expect(textOf(PRIMARY)).toContain('"b"');
    const done = await apply('coding', { headers: { 'if-match': dry.body.resource_version } });
    expect(done.body).toEqual({ ...dry.body, dry_run: false });
    expect([textOf(PRIMARY), textOf(EMBED), textOf(SlotName.parse('stt'))]).toEqual([A, E, 'enabled = false\n\n[model]\ndefault = "s"\n']);
    expect((await send('GET', '/api/profiles/coding')).body).toMatchObject({ active: true });
    expect((await apply('coding')).body).toMatchObject({
      plan: { changes: [] },
      slots: [{ result: 'unchanged' }, { result: 'unchanged' }, { result: 'unchanged' }],
    });
  });

  test('replaces a profile, or creates only, and deletes it without touching a slot', async () => {
    await send('PUT', '/api/profiles/coding');
    expect((await send('PUT', '/api/profiles/coding')).status).toBe(200);
    const refused = await send('PUT', '/api/profiles/coding', { headers: { 'if-none-match': '*' } });
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'profile.conflict', param: 'name' } } });
    expect((await send('DELETE', '/api/profiles/coding')).status).toBe(204);
    expect(await send('DELETE', '/api/profiles/coding')).toMatchObject({
      status: 404,
      body: { error: { message: 'There is no profile "coding" (none is saved)' } },
    });
    expect(textOf(PRIMARY)).toBe(A);
  });

  test('refuses a switch whose plan is out of date, and one that a concurrent edit overtakes', async () => {
    await send('PUT', '/api/profiles/coding');
    world.save(PRIMARY, A.replace('"a"', '"b"'));
    const { etag } = await send('GET', '/api/profiles/coding');
    world.save(PRIMARY, A.replace('"a"', '"c"'));
    expect(await apply('coding', { headers: { 'if-match': etag ?? '' } })).toMatchObject({
      status: 409,
      body: { error: { code: 'profile.conflict' } },
    });
    expect(textOf(PRIMARY)).toContain('"c"');
    const { read } = profiles.store;
    world.profiles = {
      ...profiles.store,
      async read(name) {
        const found = await read(name);
        world.slots.texts.set(PRIMARY, A.replace('"a"', '"d"'));
        return found;
      },
    };
    expect(await apply('coding')).toMatchObject({ status: 409, body: { error: { code: 'profile.conflict' } } });
    expect(textOf(PRIMARY)).toContain('"d"');
  });

  test('names file and line of a mistake, and changes nothing', async () => {
    await profiles.write('coding/primary.toml', A.replace('"a"', '"b"'));
    await profiles.write('coding/embed.toml', '[model]\ndefault = 5\n');
    const refused = await apply('coding');
    expect(refused).toMatchObject({ status: 422, body: { error: { code: 'profile.invalid' } } });
    expect(refused.body.error.message).toMatch(
      /nothing was changed: .*\/coding\/embed\.toml:2:1: model\.default: Write a string in quotes, not 5$/,
    );
    expect(textOf(PRIMARY)).toBe(A);
    const [listed] = (await send('GET', '/api/profiles')).body.profiles;
    expect(listed).toMatchObject({ active: false, problems: [{ key: 'model.default', line: 2 }] });
  });

  test('saves documents, which are guarded as an edit of the slot is', async () => {
    const save = async (spec: object) => await send('PUT', '/api/profiles/rag', { body: { slots: [{ name: 'primary', spec }] } });
    expect(await save({ model: { default: 'r' } })).toMatchObject({
      status: 201,
      body: {
        slots: [
          { name: 'embed', result: 'disabled' },
          { name: 'primary', result: 'updated', spec: { model: { default: 'r' } } },
        ],
      },
    });
    expect(await save({ model: { default: 'r', args: ['--log-file', '/etc/cron.d/x'] } })).toMatchObject({
      status: 422,
      body: { error: { code: 'slot.invalid', message: expect.stringContaining('--log-file') } },
    });
    expect(await save({ model: { default: 'r' }, env: { LD_PRELOAD: '/tmp/x.so' } })).toMatchObject({
      status: 422,
      body: { error: { code: 'slot.invalid' } },
    });
    expect(await save({ model: {} })).toMatchObject({ status: 422, body: { error: { code: 'slot.invalid' } } });
    const twice = [
      { name: 'primary', spec: { model: { default: 'r' } } },
      { name: 'primary', spec: { model: { default: 's' } } },
    ];
    expect(await send('PUT', '/api/profiles/rag', { body: { slots: twice } })).toMatchObject({
      status: 400,
      body: { error: { param: 'slots.1.name' } },
    });
    await apply('rag');
    expect(textOf(PRIMARY)).toBe('[model]\ndefault = "r"\n');
  });

  test('returns to what was written by hand, also where the API alone could not write it', async () => {
    const unsafe = `${A.split('[env]')[0] ?? ''}args = ["--log-file", "/var/log/llama"]\n`;
    world.save(PRIMARY, unsafe);
    await send('PUT', '/api/profiles/logged');
    world.save(PRIMARY, A);
    expect(await apply('logged')).toMatchObject({ status: 200 });
    expect(textOf(PRIMARY)).toBe(unsafe);
  });

  test.each(['..', '..%2F..%2Fslots', '%2Fetc', 'a%00b', 'A', '-a', 'a--b', 'a'.repeat(41), '.coding.01234567.old'])(
    'refuses the name %s',
    async (name) => {
      for (const [method, path] of [
        ['GET', ''],
        ['PUT', ''],
        ['DELETE', ''],
        ['POST', '/apply'],
      ] as const) {
        const { status } = await send(method, `/api/profiles/${name}${path}`, method === 'GET' ? {} : { body: {} });
        expect([method, [400, 404, 405].includes(status)]).toEqual([method, true]);
      }
      expect([(await profiles.store.list()).profiles, textOf(PRIMARY)]).toEqual([[], A]);
    },
  );

  test('shows values of variables to administrators only, and lets nobody else change anything', async () => {
    await send('PUT', '/api/profiles/coding');
    expect(JSON.stringify((await send('GET', '/api/profiles/coding')).body)).toContain('hunter2');
    decide = () => ({ ok: true, caller: { key: 'caller', identity: 'bert', scope: 'read-only' } });
    const shown = JSON.stringify((await send('GET', '/api/profiles/coding')).body);
    expect([shown.includes('hunter2'), shown.includes('(hidden)')]).toEqual([false, true]);
    expect(JSON.stringify((await send('GET', '/api/profiles')).body)).not.toContain('hunter2');
    const access = new Map(
      world.routes.filter(({ path }) => path.startsWith('/api/profiles')).map((route) => [`${route.method} ${route.path}`, route.access]),
    );
    expect(Object.fromEntries(access)).toEqual({
      'GET /api/profiles': 'read',
      'GET /api/profiles/:name': 'read',
      'PUT /api/profiles/:name': 'admin',
      'POST /api/profiles/:name/apply': 'admin',
      'DELETE /api/profiles/:name': 'admin',
    });
  });

  test('says in a cluster what takes their place', async () => {
    world.profiles = undefined;
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/a'],
      ['PUT', '/a'],
      ['DELETE', '/a'],
      ['POST', '/a/apply'],
    ] as const) {
      const refused = await send(method, `/api/profiles${path}`, method === 'POST' ? { body: {} } : {});
      expect(refused).toMatchObject({
        status: 422,
        body: { error: { code: 'profile.unsupported', message: expect.stringContaining('Kustomize') } },
      });
    }
  });
});
