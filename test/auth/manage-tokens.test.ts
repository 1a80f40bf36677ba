/** Tokens of one label, of which only the newest stay. */
import { expect, test } from '@jest/globals';
import { createTokenManager } from '../../src/auth/manage-tokens.ts';
import { createInMemoryTokenStore } from '../api/manage/in-memory-tokens.ts';

test('`most` removes the oldest tokens with the same label, and no other', async () => {
  let now = 0;
  const manager = createTokenManager({ store: createInMemoryTokenStore(), lastUses: () => new Map(), wallNow: () => (now += 1000) });
  const create = async (label: string, most?: number): Promise<string> => {
    const created = await manager.create({ label, scope: 'v1-only', ...(most === undefined ? {} : { most }) });
    if (!created.ok) throw new Error(created.message);
    return created.value.id;
  };
  const other = await create('laptop');
  const [, second, third] = [await create('session', 2), await create('session', 2), await create('session', 2)];
  expect(manager.list().map(({ id }) => id)).toEqual([other, second, third]);
  await create('session');
  expect(manager.list()).toHaveLength(4);
});
