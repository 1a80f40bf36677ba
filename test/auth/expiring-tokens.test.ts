/** Tokens that end: before, at and after that moment, also where the clock is set, on a connection that is kept. */
import { Socket } from 'node:net';
import { beforeEach, expect, test } from '@jest/globals';
import { createTokenCheck, type Authorize } from '../../src/auth/check-token.ts';
import { createTokenManager } from '../../src/auth/manage-tokens.ts';
import { createInMemoryTokenStore } from '../api/manage/in-memory-tokens.ts';

const END = Date.parse('2027-01-31T12:00:00Z');
const settings = { SVC_AUTH_ENABLED: true, SVC_TRUSTED_PROXIES: [], SVC_PROXY_SECRET: undefined, SVC_IDENTITY_ROLES: {} };
let now: number;
let authorize: Authorize;
let used: string[];
let create: (expiresAt?: string) => Promise<string>;

beforeEach(() => {
  now = END - 1;
  used = [];
  const store = createInMemoryTokenStore();
  const manager = createTokenManager({ store, lastUses: () => new Map(), wallNow: () => now });
  authorize = createTokenCheck(settings, { store, onUse: (id) => used.push(id), wallNow: () => now });
  create = async (expiresAt) => {
    const created = await manager.create({ label: 'guest', scope: 'v1-only', expiresAt });
    if (!created.ok) throw new Error(created.message);
    return created.value.token;
  };
});

async function ask(token: string, socket = new Socket()): Promise<string> {
  const decision = await authorize('v1', { rawHeaders: ['authorization', `Bearer ${token}`], socket });
  return decision.ok ? 'ok' : decision.code;
}

test('a token is accepted until its end, and refused from then on', async () => {
  const token = await create('2027-01-31T12:00:00Z');
  expect(await ask(token)).toBe('ok');
  now = END;
  expect(await ask(token)).toBe('auth.expired');
  expect(used).toHaveLength(1);
});

test('a connection that is kept gains no time, and a clock that is set back returns it', async () => {
  const token = await create('2027-01-31T13:00:00+01:00');
  const socket = new Socket();
  expect([await ask(token, socket), await ask(token, socket)]).toEqual(['ok', 'ok']);
  now = END + 1;
  expect(await ask(token, socket)).toBe('auth.expired');
  now = END - 1000;
  expect(await ask(token, socket)).toBe('ok');
});

test('a wrong secret of an expired token is not told that it has expired', async () => {
  const token = await create('2027-01-31T12:00:00Z');
  now = END;
  expect(await ask(`${token.slice(0, 13)}${'A'.repeat(43)}`)).toBe('auth.invalid');
});

test('a token without an end is accepted in a hundred years', async () => {
  const token = await create();
  now = END + 100 * 365 * 86_400_000;
  expect(await ask(token)).toBe('ok');
});
