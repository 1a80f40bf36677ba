/** The history of a slot over HTTP, and undo: what it writes, refuses and records. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Authorize } from '../../../src/auth/check-token.ts';
import type { Revision } from '../../../src/schema/slot/revision-store.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';

const PRIMARY = SlotName.parse('primary');
const TEXT = '# mine\nbackend = "cpu" # for now\n\n[model]\ndefault = "c.gguf" # the large one\ncontext = 4096\n';
const revision = (number: number, model: object, more: Partial<Revision> = {}): Revision => ({
  number,
  at: 1_800_000_000_000 + number,
  who: 'anna',
  outcome: 'served',
  document: { backend: 'cpu', model },
  ...more,
});
const HISTORY = [
  revision(1, { default: 'a.gguf', context: 4096 }),
  revision(2, { default: 'b.gguf' }, { outcome: 'never_ready', who: 'file' }),
  revision(5, { default: 'c.gguf', context: 4096 }, { outcome: 'pending', undoOf: 1 }),
];

let scope: 'admin' | 'read-only';
let history: readonly Revision[];
let world: World;
beforeEach(async () => {
  scope = 'admin';
  history = HISTORY;
  const authorize: Authorize = () => ({ ok: true, caller: { key: 'token:1', identity: 'anna', scope } });
  world = await startWorld({ authorize });
  world.revisions = { list: async () => history, attribute: () => undefined };
  world.save(PRIMARY, TEXT);
  await world.idle();
});
afterEach(() => world.close());

async function call(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(`${world.url}/api/slots/primary${path}`, {
    method,
    headers: { ...json, ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const answered: { readonly error: { readonly code: string; readonly message: string } } = JSON.parse(await response.text());
  return { status: response.status, body: answered };
}
const text = () => world.slots.texts.get(PRIMARY);

describe('GET /api/slots/{name}/revisions', () => {
  test('lists the newest first, with what each one changed', async () => {
    const { body } = await call('GET', '/revisions');
    expect(body).toMatchObject({
      name: 'primary',
      kept: true,
      revisions: [
        {
          revision: 5,
          outcome: 'pending',
          present: true,
          undo_of: 1,
          message: 'changed model.default from "b.gguf" to "c.gguf", set model.context to 4096',
        },
        {
          revision: 2,
          outcome: 'never_ready',
          present: false,
          who: 'file',
          message: 'changed model.default from "a.gguf" to "b.gguf", removed model.context, which was 4096',
        },
        {
          revision: 1,
          outcome: 'served',
          present: false,
          undo_of: null,
          message: null,
          who: 'anna',
          at: '2027-01-15T08:00:00.001Z',
          spec: { backend: 'cpu', model: { default: 'a.gguf', context: 4096 } },
        },
      ],
    });
  });

  test('shows values of variables to administrators only', async () => {
    history = [
      revision(1, { default: 'a' }),
      revision(2, { default: 'a' }, { document: { model: { default: 'a' }, env: { TOKEN: 'hunter2' } } }),
    ];
    expect(JSON.stringify((await call('GET', '/revisions')).body)).toContain('"TOKEN":"hunter2"');
    scope = 'read-only';
    const shown = JSON.stringify((await call('GET', '/revisions')).body);
    expect(shown).toContain('"TOKEN":"(hidden)"');
    expect(shown).not.toContain('hunter2');
  });

  test('says that none are kept', async () => {
    world.revisions = undefined;
    expect((await call('GET', '/revisions')).body).toEqual({ name: 'primary', kept: false, revisions: [] });
  });
});

describe('POST /api/slots/{name}/undo', () => {
  test('edits the keys that differ, and leaves comments where they are', async () => {
    expect(await call('POST', '/undo', {})).toEqual({
      status: 200,
      body: { name: 'primary', dry_run: false, revision: 1, result: 'undone', message: 'changed model.default from "c.gguf" to "a.gguf"' },
    });
    expect(text()).toBe(TEXT.replace('c.gguf', 'a.gguf'));
  });

  test('writes nothing for a dry run, and nothing for what the slot says already', async () => {
    expect((await call('POST', '/undo', { dry_run: true })).body).toMatchObject({ result: 'undone', dry_run: true });
    expect((await call('POST', '/undo', { to_revision: 5 })).body).toMatchObject({ result: 'unchanged', revision: 5 });
    expect(text()).toBe(TEXT);
  });

  test.each<readonly [string, object, string, number, string, Record<string, string>]>([
    ['of a revision that is not kept', { to_revision: 4 }, TEXT, 404, 'the revisions are 1, 2, 5', {}],
    ['of a slot that has changed since', {}, TEXT, 409, 'has changed', { 'if-match': '"old"' }],
    ['while rollouts are paused', {}, `${TEXT}\n[rollout]\npaused = true\n`, 409, 'svcctl rollout resume slot/primary', {}],
    ['of a text that cannot be read', {}, 'model = [', 422, 'correct its syntax', {}],
  ])('is refused: %s', async (_, body, present, status, message, headers) => {
    world.slots.texts.set(PRIMARY, present);
    const refused = await call('POST', '/undo', body, headers);
    expect([refused.status, refused.body.error.message]).toEqual([status, expect.stringContaining(message)]);
    expect(text()).toBe(present);
  });

  test('is refused where another program declares the slot, with the way to do it there', async () => {
    world.revisions = { list: async () => history, attribute: () => undefined, managerOf: async () => 'argocd-controller' };
    const { status, body } = await call('POST', '/undo', {});
    expect([status, body.error.code]).toEqual([409, 'rollout.managed']);
    expect(body.error.message).toContain('"argocd-controller" declares slot "primary"');
    expect(body.error.message).toContain('"git log -3 --before=2027-01-15T08:00:00.005Z" lists it, "git revert COMMIT"');
    expect(text()).toBe(TEXT);
  });

  test('an unsafe edit is refused with the reason and the way to do it by hand', async () => {
    history = [revision(1, { default: 'a.gguf', args: ['--rpc', 'evil:1'] }), ...HISTORY.slice(1)];
    const { status, body } = await call('POST', '/undo', {});
    expect([status, body.error.code]).toEqual([422, 'slot.invalid']);
    expect(body.error.message).toContain('The API may not set the argument "--rpc"');
    expect(body.error.message).toContain('"svcctl rollout history slot/primary --revision 1" prints its spec');
    expect(text()).toBe(TEXT);
  });

  test('needs the scope "admin" as every edit does', async () => {
    expect(world.routes.filter(({ path }) => path.endsWith('/undo')).map(({ access }) => access)).toEqual(['admin']);
  });
});

test.each(['load', 'unload', 'restart'])('"%s" is refused while rollouts are paused', async (verb) => {
  world.slots.texts.set(PRIMARY, `${TEXT}\n[rollout]\npaused = true\n`);
  const { status, body } = await call('POST', `/${verb}`, {});
  expect([status, body.error.code]).toEqual([409, 'rollout.paused']);
});
