import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { svcctl } from './run-svcctl.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  for (const name of ['a', 'b', 'c', 'd']) world.save(SlotName.parse(name), 'enabled = false\n[model]\ndefault = "a"\n');
  await world.idle();
});
afterAll(() => world.close());

const get = async (size: string) =>
  await svcctl(['get', 'slots', '-o', 'name', '--chunk-size', size], { env: { SVCCTL_SERVER: world.url } });

test.each(['1', '2', '4', '500'])('"svcctl get slots" reads chunks of %s, and prints all slots', async (size) => {
  expect((await get(size)).out).toBe('slot/a\nslot/b\nslot/c\nslot/d\n');
});

test.each(['0', '-1', 'x', '1.5', '10001'])('"svcctl get slots" refuses chunks of %s', async (size) => {
  expect(await get(size)).toMatchObject({ code: 64, err: expect.stringContaining('"--chunk-size"') });
});
