/** `svcctl mcp` against a real gateway. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { svcctl } from './run-svcctl.ts';

let world: World;
beforeAll(async () => {
  const caller = { key: 'user:anna', identity: 'anna', scope: 'admin' } as const;
  world = await startWorld({ env: { SVC_MCP: 'on', SVC_MCP_APPROVE: 'human' }, authorize: () => ({ ok: true, caller }) });
});
afterAll(async () => await world.close());

const run = async (...args: readonly string[]) => await svcctl(args, { env: { SVCCTL_SERVER: world.url } });

/** Returns the id. */
function plan(after: unknown): string {
  const by = { key: 'token:1a2b3c4d', identity: 'agent', scope: 'admin' as const };
  const slots = [{ name: SlotName.parse('primary'), result: 'updated' as const, keys: [{ key: 'model.default', after }] }];
  return world.agents.plans?.add({ edits: [], slots, versions: new Map(), text: 'First\nthen' }, by).plan.id ?? '';
}

test('plans are listed with every change, approved and rejected', async () => {
  expect(await run('mcp', 'pending')).toEqual({ code: 0, out: '', err: 'No agent has a plan\n' });
  const [one, two] = [plan('a'), plan('b')];
  expect(await run('mcp', 'approve', one)).toEqual({ code: 0, out: `plan/${one} approved\n`, err: '' });
  const { out } = await run('mcp', 'pending');
  expect(out.split('\n').map((line) => line.replace(/until \S+Z$/, 'until then'))).toEqual([
    `plan/${one} by "agent" (token:1a2b3c4d), may be applied until then`,
    '  slot/primary updated',
    '    model.default: (not set) -> "a"',
    '  First',
    '  then',
    `plan/${two} by "agent" (token:1a2b3c4d), waits for approval until then`,
    '  slot/primary updated',
    '    model.default: (not set) -> "b"',
    '  First',
    '  then',
    '',
  ]);
  expect(JSON.parse((await run('mcp', 'pending', '-o', 'json')).out).plans).toMatchObject([
    { id: one, waits: false },
    { id: two, waits: true },
  ]);
  expect(await run('mcp', 'reject', two)).toEqual({ code: 0, out: `plan/${two} rejected\n`, err: '' });
  expect(await run('mcp', 'approve', two)).toMatchObject({ code: 1, err: expect.stringContaining('rejected already') });
});

test('text of a model cannot mislead who approves', async () => {
  const id = plan('a\u202Eb\u0007\nplan/00000000');
  const { out } = await run('mcp', 'pending');
  expect(out).toContain(String.raw`-> "a\u{202e}b\u0007\nplan/00000000"`);
  await run('mcp', 'reject', id);
});

test('a wrong id is wrong usage', async () => {
  expect(await run('mcp', 'approve', '../x')).toMatchObject({ code: 64, err: expect.stringContaining('8 hexadecimal digits') });
});
