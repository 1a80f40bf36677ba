/** `svcctl token` against a cluster, and where svcctl finds a token. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SECRETS } from '../../src/cluster/client/decide/resource-path.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { NAMESPACE, startCluster, type Cluster } from './cluster-fixture.ts';
import { svcctl } from './run-svcctl.ts';

const TOKEN = `svc_1a2b3c4d.${'A'.repeat(43)}`;
let home: string;
let service: Server;
let url: string;
/** Of the last request that reached the service. */
let headers: IncomingHttpHeaders | undefined;

beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'svcctl-token-'));
  headers = undefined;
  service = createServer((request, response) => {
    ({ headers } = request);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"tokens":[]}');
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const address = service.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
});
afterEach(async () => {
  service.closeAllConnections();
  service.close();
  await rm(home, { recursive: true, force: true });
});

async function writeToken(mode: number): Promise<string> {
  const file = path.join(home, '.config/svc/token');
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `${TOKEN}\n`);
  await chmod(file, mode);
  return file;
}

describe('svcctl with a token in ~/.config/svc/token', () => {
  test('sends it if nobody else can read it', async () => {
    await writeToken(0o600);
    expect(await svcctl(['token', 'list', '--server', url], { env: { HOME: home } })).toMatchObject({ code: 0 });
    expect(headers?.authorization).toBe(`Bearer ${TOKEN}`);
  });

  test.each([
    ['0640', 0o640],
    ['0604', 0o604],
    ['0620', 0o620],
  ])('refuses it with the mode %s, says what to do, and sends nothing', async (_name, mode) => {
    const file = await writeToken(mode);
    const { code, err } = await svcctl(['token', 'list', '--server', url], { env: { HOME: home } });
    expect([code, err]).toEqual([
      1,
      expect.stringContaining(`error: Other users can read or replace the token in "${file}"\nhint: Run "chmod 600 ${file}"`),
    ]);
    expect(err).not.toContain(TOKEN);
    expect(headers).toBeUndefined();
  });

  test('does not look at it where another token is given', async () => {
    await writeToken(0o644);
    const other = `svc_00000000.${'B'.repeat(43)}`;
    expect(await svcctl(['token', 'list', '--server', url], { env: { HOME: home, SVCCTL_TOKEN: other } })).toMatchObject({ code: 0 });
    expect(headers?.authorization).toBe(`Bearer ${other}`);
  });
});

describe('svcctl token in a cluster', () => {
  let cluster: Cluster;
  beforeEach(async () => {
    cluster = await startCluster();
  });
  afterEach(() => cluster.close());

  const putSecret = (name = 'svc-tokens') => cluster.fake.put(SECRETS, NAMESPACE, { metadata: { name }, type: 'Opaque' });
  const storedText = (): string => {
    const data = cluster.fake.objects(SECRETS, NAMESPACE)[0]?.['data'];
    const encoded = isTable(data) ? data['tokens.toml'] : undefined;
    return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : '';
  };

  test('creates, lists and revokes with the rights of the kubeconfig, without a running service', async () => {
    putSecret();
    const created = await cluster.run(['token', 'create', '--label', 'first', '--scope', 'admin']);
    expect(created).toMatchObject({ code: 0, out: expect.stringMatching(/^svc_[0-9a-f]{8}\.[\w-]{43}\n$/) });
    const [id = '', secret = ''] = created.out.trim().slice(4).split('.');
    expect(storedText()).toContain(`[tokens.${id}]`);
    expect(storedText()).not.toContain(secret);
    expect(await cluster.run(['token', 'list'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(new RegExp(`\\n${id} +admin .*first`)),
    });
    expect(await cluster.run(['token', 'list', '-o', 'name'])).toMatchObject({ code: 0, out: `token/${id}\n` });
    expect(await cluster.run(['token', 'revoke', '00000000'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('not found'),
    });
    expect(await cluster.run(['token', 'revoke', id])).toMatchObject({ code: 0, out: `token/${id} revoked\n` });
    expect(storedText()).not.toContain(id);
    expect(cluster.proxied).toEqual([]);
  }, 60_000);

  test('finds the Secret by --secret or SVC_TOKENS_SECRET, and says what is missing otherwise', async () => {
    putSecret('llm-svc-tokens');
    const create = ['token', 'create', '--label', 'first'];
    expect(await cluster.run([...create, '--secret', 'llm-svc-tokens'])).toMatchObject({ code: 0 });
    expect(await cluster.run(create, { env: { SVC_TOKENS_SECRET: 'llm-svc-tokens' } })).toMatchObject({ code: 0 });
    expect(storedText().match(/^\[tokens\./gm)).toHaveLength(2);
    const missing = await cluster.run(create);
    expect(missing).toMatchObject({ code: 1, out: '' });
    expect(missing.err).toMatch(/error: Could not read the Secret "svc-tokens" in namespace "models":.*\n.*--secret/);
    cluster.forbid((_method, path_) => path_.includes('/secrets/'));
    expect(await cluster.run(['token', 'list'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/Could not read the Secret.*"me" may not "get" the resource "secrets"/),
    });
    expect(await cluster.run([...create, '--secret', '../x'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('Invalid Secret name'),
    });
  }, 180_000);

  test('asks the service where a token is given, in a header that the API server passes on', async () => {
    putSecret();
    cluster.addPod('svc-0', url);
    cluster.lead('svc-0');
    expect(await cluster.run(['token', 'list'], { env: { SVCCTL_TOKEN: TOKEN } })).toMatchObject({ code: 0 });
    expect(headers).toMatchObject({ 'x-api-key': TOKEN });
    expect(cluster.proxied).toEqual(['GET svc-0:8080 /api/auth/tokens']);
    expect(cluster.fake.faults.count({ resource: 'secrets' })).toBe(0);
  }, 180_000);

  test('never sends the token of ~/.config/svc/token, which is for another service', async () => {
    await writeToken(0o600);
    cluster.addPod('svc-0', url);
    cluster.lead('svc-0');
    await cluster.run(['get', 'slots'], { env: { HOME: home } });
    expect([headers?.['x-api-key'], headers?.authorization, headers?.['user-agent']]).toEqual([undefined, undefined, 'svcctl']);
  }, 180_000);
});

test('a token gets its weight and priority as options, and an edit changes and removes them', async () => {
  const options = { env: { HOME: home, SVC_CONFIG_DIR: home, SVC_STATE_DIR: home } };
  const create = ['token', 'create', '--label', 'batch', '--scope', 'v1-only', '--weight', '5', '--priority', 'low', '-o', 'json'];
  const created: { id: string; limits: object } = JSON.parse((await svcctl(create, options)).out);
  expect(created.limits).toEqual({ weight: 5, priority: 'low' });
  const edited = await svcctl(['token', 'edit', created.id, '--weight', 'none', '--priority', 'high'], options);
  expect([edited.code, edited.out]).toEqual([0, expect.stringContaining('priority = high')]);
  expect(edited.out).not.toContain('weight');
  const wrong = await svcctl(['token', 'edit', created.id, '--weight', '101'], options);
  expect([wrong.code, wrong.err]).toEqual([64, expect.stringContaining('Invalid value of --weight')]);
});
