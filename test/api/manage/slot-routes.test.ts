import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EMPTY_BOARD } from '../../../src/reconciler/board.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';
import { UNKNOWN_MODEL } from './world-models.ts';

const PRIMARY = SlotName.parse('primary');
const TEXT = '# mine\nbackend = "cpu"\n\n[model]\ndefault = "a.gguf" # the small one\n';

let world: World;
beforeEach(async () => {
  world = await startWorld();
  world.save(PRIMARY, TEXT);
  await world.idle();
});
afterEach(() => world.close());

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(world.url + path, {
    method,
    headers: { ...json, ...headers },
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

describe('/api/slots', () => {
  test('returns the document in snake_case with the status from the board', async () => {
    world.save(PRIMARY, `${TEXT}\n[lifecycle]\nidle_timeout = "15m"\n\n[env]\nMY_keyName = "1"\n`);
    await world.idle();
    const { body } = await call('GET', '/api/slots');
    expect(body.slots).toHaveLength(1);
    expect(body.slots[0]).toMatchObject({
      name: 'primary',
      spec: { backend: 'cpu', model: { default: 'a.gguf' }, lifecycle: { idle_timeout: '15m' }, env: { MY_keyName: '1' } },
      status: {
        state: 'ready',
        observed_generation: 2,
        model: 'a.gguf',
        memory_bytes: 1_048_576,
        restarts: 0,
        since: '2023-11-14T22:13:20.000Z',
      },
      generation: 2,
    });
  });

  describe('with many slots', () => {
    const NAMES = ['a', 'b', 'c', 'd', 'primary'];
    const list = async (query: string, headers: Record<string, string> = {}) =>
      await call('GET', `/api/slots?${query}`, undefined, headers);
    const namesOf = ({ body }: { readonly body?: { readonly slots: readonly { readonly name: string }[] } }) =>
      body?.slots.map(({ name }) => name);
    beforeEach(async () => {
      for (const name of NAMES.slice(0, 4)) world.save(SlotName.parse(name), TEXT);
      await world.idle();
    });

    test('returns pages', async () => {
      const first = await list('limit=2');
      expect([namesOf(first), first.body.continue]).toEqual([['a', 'b'], 'b']);
      const second = await list('limit=2&continue=b');
      expect([namesOf(second), second.body.continue]).toEqual([['c', 'd'], 'd']);
      const last = await list('limit=2&continue=d');
      expect([namesOf(last), last.body.continue]).toEqual([['primary'], null]);
      expect((await list('fields=names')).body.slots).toEqual(NAMES.map((name) => ({ name })));
    });

    test('returns what has changed since an answer, and 304 where nothing has', async () => {
      const { body, headers } = await list('');
      expect(body.removed).toBeNull();
      const etag = headers.get('etag') ?? '';
      expect(etag).toBe(`W/"${body.version}"`);
      for (const known of [etag, `"${body.version}"`, `"other", ${etag}`, '*'])
        expect(await list('', { 'if-none-match': known })).toMatchObject({ status: 304, body: undefined });
      expect((await list(`since=${body.version}`)).body).toMatchObject({ slots: [], removed: [] });
      world.save(SlotName.parse('b'), `priority = 3\n${TEXT}`);
      await call('DELETE', '/api/slots/c');
      await world.idle();
      const changed = await list(`since=${body.version}`, { 'if-none-match': etag });
      expect([changed.status, namesOf(changed), changed.body.removed]).toEqual([200, ['b'], ['c']]);
      expect((await list('since=elsewhere.1')).body.slots).toHaveLength(4);
    });

    test.each(['limit=0', 'limit=x', 'fields=some', 'limit=1&page=2'])('refuses "%s"', async (query) => {
      expect(await list(query)).toMatchObject({ status: 400, body: { error: { code: 'request.invalid' } } });
    });

    test('returns the lines of the status that have changed', async () => {
      const status = async (query = '') => (await call('GET', `/api/status${query}`)).body;
      const first = await status();
      expect(first).toMatchObject({ slots_removed: null });
      expect(first.slots).toHaveLength(5);
      expect(await status(`?since=${first.slots_version}`)).toMatchObject({ slots: [], slots_removed: [], version: first.version });
    });
  });

  test('returns a slot that no pass has seen as offline, and an invalid one with its problems', async () => {
    const before = world.board.current();
    const message = 'Write TOML that can be read';
    const name = SlotName.parse('bad');
    world.board.publish({ ...before, refused: new Map([[name, [{ path: [], message, file: 'bad.toml', line: 3, column: 1 }]]]) });
    const { body } = await call('GET', '/api/slots/bad');
    expect(body).toMatchObject({
      spec: null,
      status: { state: 'offline', problems: [{ message, line: 3, column: 1 }] },
      resource_version: null,
    });
    expect(body.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'SpecValid', status: 'False', message: 'bad.toml:3:1: Write TOML that can be read' }),
    );
  });

  test('says that no slot is missing before the first pass has found the slots', async () => {
    world.board.publish(EMPTY_BOARD);
    for (const path of ['/api/slots/other', '/api/slots/other/explain', '/api/slots/other/logs']) {
      const answer = await call('GET', path);
      expect(answer).toMatchObject({ status: 503, body: { error: { code: 'server.starting' } } });
      expect(answer.headers.get('retry-after')).toBe('1');
      expect(answer.headers.get('x-should-retry')).not.toBe('false');
    }
  });

  test('answers 404 with the known names for an unknown slot, and 400 for an invalid name', async () => {
    expect(await call('GET', '/api/slots/other')).toMatchObject({
      status: 404,
      body: {
        error: { code: 'slot.not_found', param: 'name', origin: 'gateway', message: 'There is no slot "other"; known slots: "primary"' },
      },
    });
    expect(await call('GET', '/api/slots/..%2Fetc')).toMatchObject({
      status: 400,
      body: { error: { code: 'request.invalid', param: 'name' } },
    });
  });
});

describe('PUT /api/slots/{name}', () => {
  test('creates with 201, replaces with 200, and accepts the output of GET', async () => {
    const made = await call('PUT', '/api/slots/embed', { spec: { model: { default: 'e.gguf' } } });
    expect(made).toMatchObject({ status: 201, body: { name: 'embed', spec: { model: { default: 'e.gguf' } } } });
    const again = await call('PUT', '/api/slots/embed', (await call('GET', '/api/slots/embed')).body);
    expect(again.status).toBe(200);
    expect(world.slots.texts.get(SlotName.parse('embed'))).toBe('[model]\ndefault = "e.gguf"\n');
  });

  test('writes the text that is sent if it means the same, also in place of one that cannot be parsed', async () => {
    const text = '# Mine\n[model]\ndefault = "b"\n';
    world.slots.texts.set(PRIMARY, '# Mine\n[model\n');
    const broken = await call('GET', '/api/slots/primary/text');
    expect(broken).toMatchObject({ status: 200, body: { text: '# Mine\n[model\n', resource_version: expect.any(String) } });
    const { resource_version } = broken.body;
    const edit = { spec: { model: { default: 'b' } }, text, resource_version };
    expect((await call('PUT', '/api/slots/primary', edit)).status).toBe(200);
    expect(world.slots.texts.get(PRIMARY)).toBe(text);
    expect((await call('PUT', '/api/slots/primary', edit)).status).toBe(409);
    expect((await call('PUT', '/api/slots/primary', { spec: { model: { default: 'c' } }, text })).status).toBe(200);
    expect(world.slots.texts.get(PRIMARY)).toBe('# Mine\n[model]\ndefault = "c"\n');
  });

  test('says where the text of a slot is that is no file', async () => {
    world.slots.fillsDefaults = true;
    const { status, body } = await call('GET', '/api/slots/primary/text');
    world.slots.fillsDefaults = false;
    expect([status, body.error.code, body.error.message]).toEqual([
      404,
      'slot.not_found',
      'Slot "primary" is no file here: read it with "kubectl get slotspec primary -o yaml"',
    ]);
  });

  test('refuses "If-None-Match: *" if the slot exists', async () => {
    const answer = await call('PUT', '/api/slots/primary', { spec: { model: { default: 'b' } } }, { 'if-none-match': '*' });
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'slot.conflict' } } });
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT);
  });

  test('names every invalid key in snake_case and changes nothing', async () => {
    const spec = { modle: {}, model: { default: 'b' }, lifecycle: { idle_timeout: 5, swapp: 'auto' }, priority: 'high' };
    const { status, body } = await call('PUT', '/api/slots/primary', { spec });
    expect(status).toBe(422);
    expect(body.error.code).toBe('slot.invalid');
    for (const key of ['modle', 'lifecycle.idle_timeout', 'lifecycle.swapp', 'priority']) expect(body.error.message).toContain(key);
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT);
  });

  test('refuses keys in camelCase and suggests the right ones', async () => {
    const { status, body } = await call('PUT', '/api/slots/primary', { spec: { model: { default: 'b' }, nodeSelector: {} } });
    expect(status).toBe(422);
    expect(body.error.message).toContain('did you mean "node_selector"');
  });

  test('refuses bodies that are not a slot and names the field', async () => {
    expect(await call('PUT', '/api/slots/primary', '{"spec":')).toMatchObject({
      status: 400,
      body: { error: { code: 'request.invalid' } },
    });
    expect(await call('PUT', '/api/slots/primary', { enabled: false })).toMatchObject({ status: 400, body: { error: { param: 'spec' } } });
    expect(await call('PUT', '/api/slots/primary', '{"spec":{"__proto__":{"x":1}}}')).toMatchObject({ status: 400 });
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT);
  });
});

describe('PATCH /api/slots/{name}', () => {
  test('merges, keeps comments, and removes a key that is null', async () => {
    const { status } = await call('PATCH', '/api/slots/primary', { spec: { backend: null, model: { default: 'b.gguf' } } });
    expect(status).toBe(200);
    expect(world.slots.texts.get(PRIMARY)).toContain('default = "b.gguf" # the small one');
    expect(world.slots.texts.get(PRIMARY)).not.toContain('backend');
  });

  test('refuses an edit based on an older version, by header and by body', async () => {
    const { headers, body } = await call('GET', '/api/slots/primary');
    const etag = headers.get('etag') ?? '';
    expect(etag).toBe(`"${body.resource_version}"`);
    const change = { spec: { priority: 3 } };
    expect((await call('PATCH', '/api/slots/primary', change, { 'if-match': etag })).status).toBe(200);
    expect(await call('PATCH', '/api/slots/primary', { spec: { priority: 4 } }, { 'if-match': etag })).toMatchObject({ status: 409 });
    const stale = { spec: { priority: 4 }, resource_version: body.resource_version };
    expect(await call('PATCH', '/api/slots/primary', stale)).toMatchObject({ status: 409, body: { error: { code: 'slot.conflict' } } });
    expect((await call('GET', '/api/slots/primary')).body.spec.priority).toBe(3);
  });
});

describe('DELETE, load, unload, restart', () => {
  test('DELETE removes with 204, and answers 404 the second time', async () => {
    expect((await call('DELETE', '/api/slots/primary')).status).toBe(204);
    await world.idle();
    expect((await call('GET', '/api/slots/primary')).status).toBe(404);
    expect((await call('DELETE', '/api/slots/primary')).status).toBe(404);
  });

  test('load with a model edits the document and answers 202 before anything is loaded', async () => {
    await call('POST', '/api/slots/primary/unload');
    await world.idle();
    const answer = await call('POST', '/api/slots/primary/load', { model: 'b.gguf' });
    expect(answer).toMatchObject({
      status: 202,
      body: { spec: { enabled: true, model: { default: 'b.gguf' } }, status: { state: 'offline' } },
    });
    await world.idle();
    expect((await call('GET', '/api/slots/primary')).body.status).toMatchObject({ state: 'ready', model: 'b.gguf' });
  });

  test('load sets a model that nothing provides only if it is forced to', async () => {
    const refused = await call('POST', '/api/slots/primary/load', { model: UNKNOWN_MODEL });
    expect(refused).toMatchObject({ status: 404, body: { error: { code: 'model.not_found', param: 'model' } } });
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT);
    expect((await call('POST', '/api/slots/nope/load', { model: UNKNOWN_MODEL })).body.error.code).toBe('slot.not_found');
    expect((await call('POST', '/api/slots/primary/load', { model: UNKNOWN_MODEL, force: true })).status).toBe(202);
    expect(world.slots.texts.get(PRIMARY)).toContain(UNKNOWN_MODEL);
  });

  test('restart sets a new restarted_at', async () => {
    const before = Date.now();
    const { status, body } = await call('POST', '/api/slots/primary/restart');
    expect(status).toBe(202);
    expect(Date.parse(body.spec.restarted_at)).toBeGreaterThanOrEqual(before);
  });

  test('an invalid model id or an unknown field is refused with its name', async () => {
    expect(await call('POST', '/api/slots/primary/load', { model: '../../etc/passwd' })).toMatchObject({
      status: 400,
      body: { error: { param: 'model' } },
    });
    expect(await call('POST', '/api/slots/primary/load', { modl: 'b' })).toMatchObject({ status: 400, body: { error: { param: 'modl' } } });
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT);
  });

  test('a document that cannot be written results in server.internal with the reason', async () => {
    world.slots.broken = 'No space left on device';
    const { status, body } = await call('POST', '/api/slots/primary/unload');
    expect(status).toBe(500);
    expect(body.error).toMatchObject({ code: 'server.internal', message: 'Could not write slot "primary": No space left on device' });
  });
});
