import { expect } from '@jest/globals';
import type { World } from '../simulation/world.ts';

/** Expects that no action is required: another pass changes nothing, and there are no errors. */
export async function expectRest(world: World): Promise<void> {
  await world.clock.until(() => false, 200);
  const before = world.changes().length;
  const version = world.life().board.current().version;
  world.life().loop.wake();
  await world.clock.advance(100);
  expect(world.life().board.current().version).toBeGreaterThan(version);
  expect(world.changes().slice(before)).toEqual([]);
  expect(world.life().errors).toEqual([]);
}
