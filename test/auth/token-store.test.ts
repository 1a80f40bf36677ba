import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTokenManager, type TokenManager } from '../../src/auth/manage-tokens.ts';
import { createTokenStore, createTokenUse, type TokenStore } from '../../src/auth/token-store.ts';
import { createTokenVerifier } from '../../src/auth/check-token.ts';

let directory: string;
let path: string;
let warnings: string[];
let now = 0;
const log = { warn: (_fields: object, message: string): void => void warnings.push(message) };
/** Each use is later than what the one before it has seen. */
const open = (): TokenStore => createTokenStore({ path, log, now: () => (now += 10) });
const manage = (store: TokenStore): TokenManager => createTokenManager({ store, lastUses: () => new Map(), wallNow: () => Date.now() });

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-tokens-'));
  path = join(directory, 'tokens.toml');
  warnings = [];
});
afterEach(async () => await rm(directory, { recursive: true, force: true }));

async function create(tokens: TokenManager, label = 'ci') {
  const created = await tokens.create({ label, scope: 'v1-only' });
  if (!created.ok) throw new Error(created.message);
  return created.value;
}

describe('the file of the tokens', () => {
  test('is created for its owner alone, and never contains the secret', async () => {
    const store = open();
    expect([...store.current()]).toEqual([]);
    const { id, token } = await create(manage(store));
    expect(token).toMatch(new RegExp(`^svc_${id}\\.[A-Za-z0-9_-]{43}$`));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const text = await readFile(path, 'utf8');
    expect(text).toContain(`[tokens.${id}]`);
    expect(text).not.toContain(token.slice(13));
    expect([...open().current().keys()]).toEqual([id]);
  });

  test('belongs, with its lock, to the user of the service, also where root creates a token', async () => {
    await mkdir(join(directory, 'slots'));
    // Only root can give files away; others write as themselves.
    const uid = process.getuid?.() === 0 ? 54_321 : process.getuid?.();
    if (uid === 54_321) await chown(join(directory, 'slots'), uid, uid);
    await create(manage(open()));
    const names = (await readdir(directory)).filter((name) => name !== 'slots');
    expect(names.toSorted()).toEqual(['.tokens.toml.json', '.tokens.toml.lock', 'tokens.toml']);
    for (const name of names) expect([name, (await stat(join(directory, name))).uid]).toEqual([name, uid]);
  });

  test('is followed by all processes before a change of it is confirmed, however often they look', async () => {
    const [other, tokens] = [createTokenStore({ path, log }), manage(createTokenStore({ path, log }))];
    let looking = true;
    const looks = (async () => {
      while (looking) {
        other.current();
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (let index = 0; index < 20; index += 1) {
      const { id } = await create(tokens);
      expect(other.current().has(id)).toBe(true);
      expect(await tokens.revoke(id)).toMatchObject({ ok: true });
      expect(other.current().has(id)).toBe(false);
    }
    looking = false;
    await looks;
  });

  test('takes effect as soon as somebody has edited it, and a mistake in it changes nothing', async () => {
    const store = open();
    const first = await create(manage(store));
    const good = await readFile(path, 'utf8');
    expect([...store.current().keys()]).toEqual([first.id]);
    await writeFile(path, `${good}\n[tokens.oops`);
    expect([...store.current().keys()]).toEqual([first.id]);
    expect(warnings).toEqual([expect.stringMatching(/tokens\.toml:\d+:\d+: Invalid TOML.*stay in force$/)]);
    expect(await manage(store).create({ label: 'b', scope: 'all' })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^The file ".*tokens.toml" is invalid: /),
    });
    await writeFile(path, '# none\n');
    expect([...store.current()]).toEqual([]);
    await rm(path);
    expect([...store.current()]).toEqual([]);
  });

  test('that others can write is not believed', async () => {
    const store = open();
    await create(manage(store));
    expect(store.current().size).toBe(1);
    await chmod(path, 0o666);
    expect([...open().current()]).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('chmod 600')]);
    expect(store.current().size).toBe(1);
  });

  test('that others can read is believed, with a warning; one that cannot be read changes nothing', async () => {
    const store = open();
    const { id } = await create(manage(store));
    expect([...store.current().keys()]).toEqual([id]);
    await chmod(path, 0o640);
    expect([...store.current().keys()]).toEqual([id]);
    expect(warnings).toEqual([expect.stringContaining(`run "chmod 600 ${path}"`)]);
    await rm(path);
    await mkdir(path, { mode: 0o700 });
    expect([...store.current().keys()]).toEqual([id]);
    expect(warnings.at(-1)).toMatch(/^Cannot read ".*tokens\.toml": .*stay in force$/);
    expect(await manage(store).create({ label: 'b', scope: 'all' })).toMatchObject({ ok: false, message: expect.stringContaining(path) });
  });

  test('keeps what several writers change at the same time, and comments', async () => {
    await writeFile(path, '# Tokens of the office\n', { mode: 0o600 });
    const writers = [manage(open()), manage(open()), manage(open())];
    const created = await Promise.all(
      writers.flatMap((tokens, writer) => [0, 1, 2].map(async (index) => await create(tokens, `${writer}/${index}`))),
    );
    expect([...open().current().keys()].toSorted()).toEqual(created.map(({ id }) => id).toSorted());
    expect(await readFile(path, 'utf8')).toMatch(/^# Tokens of the office\n/);
  });

  test('is rid of what a killed writer has left behind', async () => {
    await writeFile(join(directory, '.tokens.toml.1234abcd.tmp'), 'half');
    await create(manage(open()));
    expect((await readdir(directory)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });
});

describe('verification', () => {
  test('accepts a token, also from the memory of the first time, until it is revoked', async () => {
    const store = open();
    const tokens = manage(store);
    const { id, token } = await create(tokens);
    const { verify } = createTokenVerifier({ store });
    expect(await verify(token)).toMatchObject({ id, identity: 'ci', scope: 'v1-only' });
    expect(verify(token)).toMatchObject({ id, identity: 'ci', scope: 'v1-only' });
    expect(await manage(open()).revoke(id)).toEqual({ ok: true, value: true });
    expect(await verify(token)).toBeUndefined();
    expect(await manage(open()).revoke(id)).toEqual({ ok: true, value: false });
  });

  test('takes the scope from the file as it is now', async () => {
    const store = open();
    const { token } = await create(manage(store));
    const { verify } = createTokenVerifier({ store });
    await verify(token);
    await writeFile(path, (await readFile(path, 'utf8')).replace('v1-only', 'read-only'), { mode: 0o600 });
    expect(verify(token)).toMatchObject({ scope: 'read-only' });
  });

  test('looks at the token and at the file with each request of one connection', async () => {
    const store = open();
    const tokens = manage(store);
    const [{ id, token }, other] = [await create(tokens), await create(tokens, 'other')];
    const { verify } = createTokenVerifier({ store });
    const [connection, second] = [{}, {}];
    for (const each of [token, other.token]) await verify(each, connection);
    for (let turn = 0; turn < 3; turn += 1) {
      expect(verify(token, connection)).toEqual({
        id,
        key: `token:${id}`,
        identity: 'ci',
        scope: 'v1-only',
        limits: undefined,
        expiresAt: undefined,
      });
      expect(verify(other.token, connection)).toMatchObject({ id: other.id });
      expect(verify(token, second)).toMatchObject({ id });
      expect(await verify(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`, second)).toBeUndefined();
    }
    await verify(token, connection);
    await writeFile(path, (await readFile(path, 'utf8')).replace('v1-only', 'read-only'), { mode: 0o600 });
    expect([verify(token, connection), verify(token, connection)]).toMatchObject([{ scope: 'read-only' }, { scope: 'read-only' }]);
    await manage(open()).revoke(id);
    expect([verify(token, connection), verify(token, second)]).toEqual([undefined, undefined]);
    expect(verify(other.token, connection)).toMatchObject({ id: other.id });
  });

  test('refuses everything else', async () => {
    const store = open();
    const { id, token } = await create(manage(store));
    const { verify } = createTokenVerifier({ store });
    const other = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
    expect(await verify(other)).toBeUndefined();
    expect(await verify(`svc_ffffffff.${token.slice(13)}`)).toBeUndefined();
    for (const odd of ['', 'svc_', token.slice(0, -1), `${token}A`, ` ${token}`, `svc_${id}`, token.toUpperCase(), 'x'.repeat(1_000_000)]) {
      expect(await verify(odd)).toBeUndefined();
    }
  });

  test('runs few checks at a time, and refuses what would have to wait too long; who was checked before is not affected', async () => {
    const store = open();
    const { token } = await create(manage(store));
    const { verify } = createTokenVerifier({ store });
    await verify(token);
    const secret = 'A'.repeat(43);
    const flood = Array.from({ length: 200 }, (_, index) => verify(`svc_${String(index).padStart(8, '0')}.${secret}`));
    expect(flood.filter((verdict) => verdict === 'busy').length).toBeGreaterThan(100);
    expect(verify(token)).toMatchObject({ identity: 'ci' });
    expect(
      (await Promise.all(flood.map(async (verdict) => await verdict))).filter((verdict) => verdict !== 'busy' && verdict !== undefined),
    ).toEqual([]);
  }, 60_000);

  test('a flood of tokens with invented ids does not keep a token from being used for the first time', async () => {
    const store = open();
    const { token } = await create(manage(store));
    const { verify } = createTokenVerifier({ store });
    const secret = 'A'.repeat(43);
    const flood = Array.from({ length: 200 }, (_, index) => verify(`svc_${String(index).padStart(8, '0')}.${secret}`));
    expect(await verify(token)).toMatchObject({ identity: 'ci' });
    await Promise.all(flood.map(async (verdict) => await verdict));
  }, 60_000);

  test('guesses of the secret of one id do not keep other tokens from being used for the first time', async () => {
    const store = open();
    const [{ id }, { token }] = [await create(manage(store)), await create(manage(store))];
    const { verify } = createTokenVerifier({ store });
    const guesses = Array.from({ length: 100 }, (_, index) => verify(`svc_${id}.${String(index).padStart(43, '0')}`));
    expect(guesses.filter((verdict) => verdict === 'busy').length).toBeGreaterThan(90);
    expect(await verify(token)).toMatchObject({ identity: 'ci' });
    await Promise.all(guesses.map(async (verdict) => await verdict));
  }, 60_000);

  test('does the same work for an id that does not exist as for a wrong secret', async () => {
    const store = open();
    const { id } = await create(manage(store));
    const hashes: string[] = [];
    const { verify } = createTokenVerifier({
      store,
      async matches(hash) {
        hashes.push(hash);
        return false;
      },
    });
    const guess = 'A'.repeat(43);
    expect([await verify(`svc_${id}.${guess}`), await verify(`svc_00000000.${guess}`)]).toEqual([undefined, undefined]);
    const [known = '', unknown] = hashes.map((hash) =>
      Object.fromEntries(
        hash
          .split('$')[3]
          ?.split(',')
          .map((one) => one.split('=')) ?? [],
      ),
    );
    expect(unknown).toEqual(known);
    expect(hashes.map((hash) => hash.split('$').slice(0, 3))).toEqual([
      ['', 'argon2id', 'v=19'],
      ['', 'argon2id', 'v=19'],
    ]);
  });
});

test('when tokens were used is written once for all uses since the last time, and not without one', async () => {
  const use = join(directory, 'use.json');
  const isKnown = (id: string): boolean => id === 'aaaaaaaa';
  const uses = await createTokenUse({ path: use, wallNow: () => 1000, isKnown, log: { warn: () => undefined } });
  const isThere = async (): Promise<boolean> => (await readdir(directory)).includes('use.json');
  await uses.flush();
  expect(await isThere()).toBe(false);
  uses.note('aaaaaaaa');
  uses.note('bbbbbbbb');
  await uses.flush();
  expect(JSON.parse(await readFile(use, 'utf8'))).toEqual({ aaaaaaaa: new Date(1000).toISOString() });
  await rm(use);
  await uses.flush();
  expect(await isThere()).toBe(false);
});
