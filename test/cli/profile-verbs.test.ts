import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { UNKNOWN_MODEL } from '../api/manage/world-models.ts';
import { openProfiles, type WorldProfiles } from '../api/manage/world-profiles.ts';
import { svcctl } from './run-svcctl.ts';

const [PRIMARY, EMBED] = [SlotName.parse('primary'), SlotName.parse('embed')];
const A = '[model]\ndefault = "a"\n';
const B = '[model]\ndefault = "b"\n';
let world: World;
let profiles: WorldProfiles;
beforeAll(async () => {
  world = await startWorld({ loadMs: 0 });
  profiles = await openProfiles(world);
});
beforeEach(async () => {
  await profiles.clear();
  world.profiles = profiles.store;
  world.slots.texts.clear();
  world.save(PRIMARY, A);
  await world.idle();
});
afterAll(async () => {
  await world.close();
  await profiles.remove();
});

const run = (...args: readonly string[]) => svcctl(['profile', ...args], { env: { SVCCTL_SERVER: world.url } });

describe('svcctl profile', () => {
  test('saves, lists, shows, applies and deletes', async () => {
    expect(await run('list')).toEqual({ code: 0, out: '', err: 'No profiles found; save one with "svcctl profile save NAME"\n' });
    expect(await run('save', 'coding')).toEqual({ code: 0, out: 'profile/coding saved (primary)\n', err: '' });
    world.save(PRIMARY, B);
    world.save(EMBED, A);
    await profiles.write('bad/primary.toml', 'x');
    const listed = await run('list');
    expect(listed.out.split('\n').map((line) => line.replaceAll(/ {2,}/g, '  ').replace(/\/\S+\//, ''))).toEqual([
      'NAME  ACTIVE  SLOTS  DIFFERENT  PROBLEM',
      expect.stringMatching(/^bad {2}no {2}0 {2}embed {2}primary\.toml:1: /),
      'coding  no  1  embed,primary',
      '',
    ]);
    expect((await run('list', '-o', 'name')).out).toBe('profile/bad\nprofile/coding\n');
    expect(JSON.parse((await run('show', 'coding', '-o', 'json')).out)).toMatchObject({
      name: 'coding',
      active: false,
      slots: [{ name: 'embed' }, { name: 'primary', spec: { model: { default: 'a' } } }],
    });
    expect((await run('show', 'coding')).out).toBe('SLOT     ON A SWITCH  MODEL\nembed    disabled     a\nprimary  updated      a\n');
    const plan = 'slot/embed disabled (dry run)\nslot/primary updated (dry run)\napply "embed"\napply "primary"\n';
    expect(await run('apply', 'coding', '--dry-run')).toEqual({ code: 0, out: plan, err: '' });
    expect(world.slots.texts.get(PRIMARY)).toBe(B);
    expect(await run('apply', 'coding')).toEqual({ code: 0, out: plan.replaceAll(' (dry run)', ''), err: '' });
    expect([world.slots.texts.get(PRIMARY), world.slots.texts.get(EMBED)]).toEqual([A, `enabled = false\n\n${A}`]);
    expect((await run('apply', 'coding')).out).toBe('slot/embed unchanged\nslot/primary unchanged\nNothing to do\n');
    expect(await run('delete', 'coding', 'bad')).toEqual({ code: 0, out: 'profile/coding deleted\nprofile/bad deleted\n', err: '' });
  });

  test('apply --dry-run exits with 1 if a slot could not be loaded afterwards', async () => {
    await profiles.write('lost/primary.toml', `backend = "cpu"\n[model]\ndefault = "${UNKNOWN_MODEL}"\n`);
    const table = await run('apply', 'lost', '--dry-run');
    expect(table).toMatchObject({ code: 1, out: expect.stringContaining('slot/primary updated (dry run)\n'), err: '' });
    const data = await run('apply', 'lost', '--dry-run', '-o', 'json');
    expect(data.code).toBe(1);
    expect(JSON.parse(data.out).plan.failing).toMatchObject([{ slot: 'primary', reason: 'ModelMissing' }]);
    await profiles.write('lost/primary.toml', A);
    expect((await run('apply', 'lost', '--dry-run')).code).toBe(0);
  });

  test('saves files, and replaces nothing if it must not', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'svc-profile-'));
    await writeFile(path.join(directory, 'embed.toml'), B);
    expect(await run('save', 'images', '-f', directory)).toMatchObject({ code: 0, out: 'profile/images saved (embed)\n' });
    const refused = await run('save', 'images', '--no-replace');
    expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringContaining('"images" exists already') });
    await rm(directory, { recursive: true });
  });

  test('says what is wrong', async () => {
    expect(await run('apply', 'none')).toMatchObject({ code: 1, err: expect.stringContaining('There is no profile "none"') });
    expect(await run('show', '../slots')).toMatchObject({ code: 64, err: expect.stringContaining('Invalid profile name "../slots"') });
    await profiles.write('bad/primary.toml', 'backend = "cpu"\n[model]\ndefault = 5\n');
    expect(await run('apply', 'bad')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/bad\/primary\.toml:3:1: model\.default: Write a string/),
    });
    world.profiles = undefined;
    expect(await run('list')).toMatchObject({ code: 1, err: expect.stringContaining('Kustomize') });
  });
});
