/** `svcctl rollout` against a real gateway. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { svcctl } from './run-svcctl.ts';

const PRIMARY = SlotName.parse('primary');
const TEXT = '[model]\ndefault = "b" # large\n';
let world: World;
beforeAll(async () => {
  world = await startWorld({ loadMs: 200 });
  const document = (model: string) => ({ model: { default: model } });
  world.revisions = {
    list: async () => [
      { number: 1, at: 1000, who: 'anna', outcome: 'served', document: document('a') },
      { number: 2, at: 2000, who: 'file', outcome: 'rolled_back', document: document('c') },
      { number: 3, at: 3000, who: 'bert', undoOf: 1, outcome: 'served', document: document('b') },
    ],
    attribute: () => undefined,
  };
});
afterAll(() => world.close());
beforeEach(async () => {
  world.save(PRIMARY, TEXT);
  await world.idle();
});

const run = async (...args: readonly string[]) => await svcctl(['rollout', ...args], { env: { SVCCTL_SERVER: world.url } });

describe('svcctl rollout history', () => {
  test('prints the oldest first', async () => {
    expect((await run('history', 'slot/primary')).out.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | ').trim())).toEqual([
      'REVISION | WHEN | WHO | OUTCOME | CHANGE',
      '1 | 1970-01-01T00:00:01.000Z | anna | served | -',
      '2 | 1970-01-01T00:00:02.000Z | file | rolled_back | changed model.default from "a" to "c"',
      '3 | 1970-01-01T00:00:03.000Z | bert | served (present) | undo to 1: changed model.default from "c" to "b"',
      '',
    ]);
  });
  test('prints the spec of one, as TOML or JSON', async () => {
    expect(await run('history', 'slot/primary', '--revision', '2')).toEqual({ code: 0, err: '', out: '[model]\ndefault = "c"\n' });
    expect(JSON.parse((await run('history', 'primary', '--revision', '2', '-o', 'json')).out)).toMatchObject({
      revision: 2,
      spec: { model: { default: 'c' } },
    });
    expect(await run('history', 'slot/primary', '--revision', '9')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Revision 9 of slot "primary" is not kept'),
    });
    expect(await run('history', 'slot/primary', '--revision', 'x')).toMatchObject({ code: 64 });
  });
});

describe('svcctl rollout undo', () => {
  test('goes to the revision that is named, or to the last other one that served, and waits', async () => {
    expect(await run('undo', 'slot/primary', '--dry-run')).toMatchObject({
      code: 0,
      out: 'slot/primary rolled back to revision 1 (dry run): changed model.default from "b" to "a"\n',
    });
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT);
    expect(await run('undo', 'slot/primary', '--to-revision', '2', '--wait')).toMatchObject({
      code: 0,
      out: 'slot/primary rolled back to revision 2: changed model.default from "b" to "c"\nslot/primary successfully rolled out\n',
    });
    expect(world.slots.texts.get(PRIMARY)).toBe(TEXT.replace('"b"', '"c"'));
    expect((await run('undo', 'slot/primary', '--to-revision', '2')).out).toBe('slot/primary unchanged (it says the same as revision 2)\n');
  });
});

describe('svcctl rollout pause and resume', () => {
  test('edit the text, refuse what is done already, and keep an undo out', async () => {
    expect((await run('pause', 'slot/primary')).out).toBe('slot/primary paused\n');
    expect(world.slots.texts.get(PRIMARY)).toBe(`${TEXT}\n[rollout]\npaused = true\n`);
    expect(await run('pause', 'slot/primary')).toMatchObject({ code: 1, err: expect.stringContaining('already paused') });
    expect(await run('undo', 'slot/primary')).toMatchObject({ code: 1, err: expect.stringContaining('resume them first') });
    expect((await run('resume', 'slot/primary')).out).toBe('slot/primary resumed\n');
    expect(world.slots.texts.get(PRIMARY)?.trimEnd()).toBe(TEXT.trimEnd());
    expect(await run('resume', 'slot/primary')).toMatchObject({ code: 1, err: expect.stringContaining('not paused') });
  });
});

test('svcctl rollout status waits until the newest spec is in force', async () => {
  world.save(PRIMARY, TEXT.replace('"b"', '"d"'));
  expect(await run('status', 'slot/primary')).toMatchObject({ code: 0, out: 'slot/primary successfully rolled out\n' });
  expect(await run('status', 'slot/none')).toMatchObject({ code: 1 });
});
