/** Tokens of a cluster in one Secret, which several replicas and `svcctl` change at the same time. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTokenManager, type TokenManager } from '../../src/auth/manage-tokens.ts';
import { createSharedTokenStore } from '../../src/auth/shared-token-store.ts';
import type { TokenStore } from '../../src/auth/token-store.ts';
import { createTokenVerifier } from '../../src/auth/check-token.ts';
import { SECRETS } from '../../src/cluster/client/decide/resource-path.ts';
import { createTokenSecret, type TokenSecret } from '../../src/cluster/token-secret.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../support/kube/fake-kube-api.ts';
import { connectToFake } from '../support/kube/fake-kube-client.ts';

const NAME = 'svc-tokens';
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const table = (id: string, hash = HASH): string =>
  `[tokens.${id}]\nlabel = "by hand"\nscope = "all"\ncreated_at = "2026-01-01T00:00:00Z"\nhash = "${hash}"\n`;

let fake: FakeKubeApi;
let own: AbortController;
let messages: string[];

beforeEach(async () => {
  fake = await startFakeKubeApi();
  own = new AbortController();
  messages = [];
});
afterEach(async () => {
  own.abort();
  await fake.close();
});

interface Replica {
  readonly secret: TokenSecret;
  readonly store: TokenStore;
  readonly manager: TokenManager;
}

async function startReplica(version = 'a'): Promise<Replica> {
  const note = (_fields: unknown, message: string): void => void messages.push(message);
  const secret = createTokenSecret({ api: await connectToFake(fake, 'default', { version }), name: NAME, log: { info: note, warn: note } });
  const store = createSharedTokenStore({
    shared: secret,
    log: { warn: note },
    onChange: (change) => void messages.push(JSON.stringify(change)),
  });
  // As the service does it.
  secret.changes(() => void store.current(), own.signal);
  secret.start(own.signal);
  return { secret, store, manager: createTokenManager({ store, lastUses: () => new Map(), wallNow: Date.now }) };
}

async function startReadyReplica(version?: string): Promise<Replica> {
  const replica = await startReplica(version);
  await eventually('the Secret was read', () => replica.secret.copy() !== undefined, 10_000);
  return replica;
}

/** As the chart creates it. */
const putEmpty = () =>
  fake.put(SECRETS, 'default', { metadata: { name: NAME, labels: { 'app.kubernetes.io/name': 'svc' } }, type: 'Opaque' });
const putText = (text: string) =>
  fake.put(SECRETS, 'default', { metadata: { name: NAME }, data: { 'tokens.toml': Buffer.from(text).toString('base64') } });

function storedText(): string {
  const [secret] = fake.objects(SECRETS, 'default').filter(({ metadata }) => metadata.name === NAME);
  const data = secret?.['data'];
  const encoded = isTable(data) ? data['tokens.toml'] : undefined;
  return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : '';
}

async function create({ manager }: Replica, label = 'ci') {
  const created = await manager.create({ label, scope: 'v1-only' });
  if (!created.ok) throw new Error(created.message);
  return created.value;
}

describe('The tokens of a cluster', () => {
  test('are created in an empty Secret, without the secret half, and are valid in every replica', async () => {
    putEmpty();
    const [first, second] = [await startReadyReplica(), await startReadyReplica()];
    const { id, token } = await create(first);
    expect([...first.store.current().keys()]).toEqual([id]);
    await eventually('the other replica knows it', () => second.store.current().has(id));
    expect(await createTokenVerifier({ store: second.store }).verify(token)).toMatchObject({ id, identity: 'ci', scope: 'v1-only' });
    expect(storedText()).toContain(`[tokens.${id}]`);
    expect(JSON.stringify(fake.objects(SECRETS))).not.toContain(token.slice(13));
    const [secret] = fake.objects(SECRETS);
    expect(secret?.metadata.labels).toEqual({ 'app.kubernetes.io/name': 'svc' });
  });

  test('that are revoked are refused at once where that was done, and with the event of the watch everywhere else', async () => {
    putEmpty();
    const replicas = [await startReadyReplica(), await startReadyReplica(), await startReadyReplica()];
    const [first] = replicas;
    if (first === undefined) throw new Error('There is no replica');
    const { id, token } = await create(first);
    const verifiers = replicas.map(({ store }) => createTokenVerifier({ store }));
    await eventually('all replicas know it', () => replicas.every(({ store }) => store.current().has(id)));
    for (const verifier of verifiers) expect(await verifier.verify(token)).toMatchObject({ id });
    fake.faults.clearLog();
    expect(await first.manager.revoke(id)).toEqual({ ok: true, value: true });
    // Without a wait.
    expect(verifiers[0]?.verify(token)).toBeUndefined();
    await eventually('no replica accepts it', () => verifiers.every((verifier) => verifier.verify(token) === undefined));
    // Neither lists nor polls: only the watches can have told.
    expect(fake.faults.requests.map(({ verb }) => verb)).toEqual(['get', 'patch']);
  });

  test('are asked for as one object, which a Role can grant by its name', async () => {
    putEmpty();
    fake.put(SECRETS, 'default', {
      metadata: { name: 'of-others' },
      data: { 'tokens.toml': Buffer.from(table('0000000a')).toString('base64') },
    });
    const replica = await startReadyReplica();
    await eventually('a watch is open', () => fake.watches.count() === 1);
    fake.put(SECRETS, 'default', { metadata: { name: 'of-others' }, data: {} });
    const { id } = await create(replica);
    expect([...replica.store.current().keys()]).toEqual([id]);
    const urls = fake.faults.requests.map(({ verb, url }) => [verb, new URL(url, fake.url)] as const);
    const unnamed = urls.filter(
      ([, url]) => !url.pathname.endsWith(`/secrets/${NAME}`) && url.searchParams.get('fieldSelector') !== `metadata.name=${NAME}`,
    );
    expect(unnamed).toEqual([]);
    expect(new Set(urls.map(([verb]) => verb))).toEqual(new Set(['list', 'watch', 'get', 'patch']));
  });

  test('of many writers at the same time are all kept', async () => {
    putEmpty();
    const replicas = [await startReadyReplica('a'), await startReadyReplica('b'), await startReadyReplica('c')];
    fake.faults.delay({ verb: 'patch' }, 20);
    const created = await Promise.all(replicas.flatMap((replica) => [create(replica, 'one'), create(replica, 'two')]));
    const ids = created.map(({ id }) => id).toSorted();
    expect(fake.faults.requests.filter(({ status }) => status === 409).length).toBeGreaterThan(0);
    for (const { store } of replicas) {
      await eventually('all tokens are known', () => store.current().size === ids.length);
      expect([...store.current().keys()].toSorted()).toEqual(ids);
    }
  });

  test('keep comments of people, and a mistake changes nothing and says where', async () => {
    putText(`# Ours\n${table('1a2b3c4d')}`);
    const replica = await startReadyReplica();
    const { id } = await create(replica);
    expect(storedText()).toMatch(/^# Ours\n\[tokens\.1a2b3c4d\]/);
    const good = storedText();
    putText(`${good}[tokens.oops`);
    await eventually('the mistake is reported', () => messages.some((message) => /^tokens\.toml:\d+:\d+: Invalid TOML/.test(message)));
    expect([...replica.store.current().keys()].toSorted()).toEqual(['1a2b3c4d', id].toSorted());
    expect(await replica.manager.revoke(id)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^The key "tokens\.toml"/),
    });
    expect(messages.join('\n')).not.toContain(HASH);
    putText(table('1a2b3c4d'));
    await eventually('the correction is read', () => !replica.store.current().has(id));
  });

  test('are none while the Secret does not exist, and creating one says what to do', async () => {
    const replica = await startReadyReplica();
    expect(replica.store.current().size).toBe(0);
    expect(await replica.manager.create({ label: 'ci', scope: 'all' })).toEqual({
      ok: false,
      message: 'Cannot find the Secret "svc-tokens" in namespace "default": create it, empty, or install the chart again',
    });
    putText(table('1a2b3c4d'));
    await eventually('the Secret is read', () => replica.store.current().has('1a2b3c4d'));
    fake.remove(SECRETS, 'default', NAME);
    await eventually('its removal revokes all tokens', () => replica.store.current().size === 0);
  });

  test('stay valid as they were last read while the API server is away; what was revoked meanwhile is refused once it is back', async () => {
    putText(`${table('1a2b3c4d')}${table('5e6f7a8b')}`);
    const replica = await startReadyReplica();
    expect(replica.store.current().size).toBe(2);
    await fake.goDown();
    await eventually(
      'the outage is logged',
      () => messages.some((message) => message.endsWith('Tokens stay valid as they were last read')),
      10_000,
    );
    expect(replica.store.current().size).toBe(2);
    expect(await replica.manager.revoke('5e6f7a8b')).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^Cannot change/),
    });
    putText(table('1a2b3c4d'));
    await fake.comeUp();
    await eventually('the revocation is known', () => !replica.store.current().has('5e6f7a8b'), 30_000);
    expect(messages.filter((message) => /Tokens stay valid/.test(message))).toHaveLength(1);
    await eventually('the end of the outage is logged', () => messages.some((message) => /up to date again/.test(message)), 10_000);
  }, 60_000);

  test('are unknown, and not none, until they were read once; the log names the missing right', async () => {
    putText(table('1a2b3c4d'));
    const allow = fake.faults.answer({ resource: 'secrets' }, { status: 403, reason: 'Forbidden', message: 'secrets is forbidden' });
    const replica = await startReplica();
    await eventually(
      'the failure is logged',
      () => messages.some((message) => message.endsWith('No token is accepted until it was read')),
      10_000,
    );
    expect(messages[0]).toContain('secrets');
    expect(replica.secret.copy()).toBeUndefined();
    allow();
    await eventually('the Secret is read', () => replica.store.current().has('1a2b3c4d'), 30_000);
  }, 60_000);

  test('that would exceed the size of a Secret are refused before anything is sent', async () => {
    putText(`${'#'.repeat(1024 * 1024 - 10)}\n`);
    const replica = await startReadyReplica();
    expect(await replica.manager.create({ label: 'ci', scope: 'all' })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^The tokens have \d+ bytes/),
    });
    expect(fake.faults.count({ verb: 'patch' })).toBe(0);
  });

  test('are not read again when something else of the Secret changes, and an unknown id writes nothing', async () => {
    putText(table('1a2b3c4d'));
    const replica = await startReadyReplica();
    const before = replica.store.current();
    const copy = replica.secret.copy();
    fake.put(SECRETS, 'default', {
      metadata: { name: NAME, labels: { team: 'x' } },
      data: { 'tokens.toml': Buffer.from(table('1a2b3c4d')).toString('base64') },
    });
    await eventually('the change arrives', () => replica.secret.copy()?.version !== copy?.version);
    expect(replica.store.current()).toBe(before);
    expect(await replica.manager.revoke('00000000')).toEqual({ ok: true, value: false });
    expect(fake.faults.count({ verb: 'patch' })).toBe(0);
  });
});
