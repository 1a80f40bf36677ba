import { describe, expect, test } from '@jest/globals';
import { createWorld } from '../support/world.ts';

describe('the loop', () => {
  test('makes a saved slot ready, and then plans nothing', async () => {
    const world = createWorld();
    world.setModel('a.gguf', 'present');
    world.edit('primary', { model: { default: 'a.gguf' } });
    await world.reach('primary', 'ready');
    const { length } = world.runtime.list();
    expect(length).toBe(1);
    await world.clock.advance(120_000);
    expect(world.life().errors).toEqual([]);
    expect(world.slot('primary').state).toBe('ready');
  });
});
