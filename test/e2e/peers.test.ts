/** Two services: one finds the other, is given a token, pins its certificate, and serves its slots; by `svcctl peer` alone. */
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { peerNameOf } from '../../src/cli/decide/peers.ts';
import { svcctl, type Ran } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { makeCertificate, openDoor, type Certificate, type Door } from '../support/https-door.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

const PUBLIC = 'https://gpu.example.com:8443';
let directory: string;
let there: Service;
let here: Service;
let door: Door;
let [certificate, renewed]: Certificate[] = [];

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-peers-'));
  [certificate, renewed] = await Promise.all(['first', 'second'].map(async (name) => await makeCertificate(directory, name)));
  there = await startService({ runtime: 'process', environment: { SVC_AUTH_ENABLED: '1', SVC_MDNS: '1', SVC_PUBLIC_URL: PUBLIC } });
  await there.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  here = await startService({ runtime: 'process' });
  if (certificate === undefined) throw new Error('not made');
  door = await openDoor(there.url, certificate);
}, 120_000);
afterAll(async () => {
  await door.close();
  await Promise.all([here.dispose(), there.dispose()]);
  await rm(directory, { recursive: true, force: true });
}, 60_000);

const run = async (service: Service, args: readonly string[], input = '', more: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  await svcctl(['peer', ...args], { input, env: { ...service.environment, ...more } });
const add = async (input: string, ...more: readonly string[]): Promise<Ran> =>
  await run(here, ['add', `https://localhost:${door.port}`, '--name', 'gpu-box', ...more], input);
const pin = (): string => certificate?.fingerprint ?? '';
const slotFiles = async (): Promise<readonly string[]> => await readdir(path.join(here.configDir, 'slots'));

test('an announced service is listed with its URL', async () => {
  const { code, out } = await run(here, ['list', '-o', 'json']);
  const { peers } = JSON.parse(out);
  expect([code, peers]).toEqual([
    0,
    expect.arrayContaining([{ name: peerNameOf(hostname()), url: PUBLIC, version: expect.any(String), announced: true, slots: [] }]),
  ]);
}, 30_000);

let token = '';

test('"trust" creates a token for inference, and prints the command with the fingerprint of its own certificate', async () => {
  const trusted = await run(there, ['trust', 'laptop'], '', { SVC_PUBLIC_URL: `https://localhost:${door.port}` });
  expect(trusted).toMatchObject({ code: 0, out: expect.stringMatching(/^svc_[0-9a-f]{8}\.[\w-]{43}\n$/) });
  expect(trusted.err).toContain(
    `svcctl peer add https://localhost:${door.port} --name ${peerNameOf(hostname())} --fingerprint ${pin()} --credential-file -`,
  );
  expect(await readFile(path.join(there.configDir, 'tokens.toml'), 'utf8')).toMatch(/label = "peer laptop"\nscope = "v1-only"/);
  token = trusted.out.trim();
}, 30_000);

test.each([
  ['a certificate that nobody signed, with its fingerprint', [], () => token, () => [`"${pin()}"`, '--fingerprint']],
  ['another certificate than the pinned one', ['--fingerprint', `sha256:${'0'.repeat(64)}`], () => token, () => [pin(), 'and not the one']],
  ['a missing token', ['pinned'], () => undefined, () => ['it needs a token', 'svcctl peer trust']],
  ['a wrong token', ['pinned'], () => `svc_00000000.${'A'.repeat(43)}`, () => ['it refused the token']],
  ['no text where a token should be', ['pinned'], () => '\n', () => ['Standard input has no token']],
  ['a slot that is not there', ['pinned', '--slots', 'img'], () => token, () => ['has no slot "img"', 'primary']],
  ['a name that no slot can begin with', ['pinned', '--name', '../x'], () => token, () => ['Invalid peer name "../x"']],
])(
  '"add" refuses %s, and declares nothing',
  async (_what, options, input, texts) => {
    const [sent, rest] = [input(), options.flatMap((each) => (each === 'pinned' ? ['--fingerprint', pin()] : [each]))];
    const { code, out, err } = await add(sent ?? '', ...rest, ...(sent === undefined ? [] : ['--credential-file', '-']));
    expect([code === 0, out]).toEqual([false, '']);
    for (const text of texts()) expect(err).toContain(text);
    expect(await slotFiles()).not.toContain('gpu-box-primary.toml');
    await expect(stat(path.join(here.configDir, 'keys/gpu-box'))).rejects.toThrow('ENOENT');
    if (token !== '') expect(err).not.toContain(token);
  },
  30_000,
);

test('"add" declares the slots of the other service, which then answer here, also under the name with a slash', async () => {
  await eventually(
    'its model is ready',
    async () => (await (await fetch(`${there.url}/v1/models`)).text()).includes('"state":"ready"'),
    60_000,
  );
  expect(await add(`${token}\n`, '--fingerprint', pin(), '--credential-file', '-')).toMatchObject({
    code: 0,
    out: 'slot/gpu-box-primary written\n',
  });
  expect((await stat(path.join(here.configDir, 'keys/gpu-box'))).mode & 0o777).toBe(0o600);
  await here.until('gpu-box-primary', 'ready', isAnswering);
  for (const model of ['gpu-box-primary', 'gpu-box/primary']) {
    const answer = await here.chat({ model });
    expect([answer.status, await chatText(answer)]).toEqual([200, DEMO_SENTENCES['demo-fox']]);
  }
  const { out } = await run(here, ['list', '-o', 'json', '--wait', '100ms']);
  expect(JSON.parse(out).peers).toContainEqual(
    expect.objectContaining({ name: 'gpu-box', url: `https://localhost:${door.port}`, slots: ['gpu-box-primary'] }),
  );
  expect(await readFile(path.join(here.configDir, 'slots/gpu-box-primary.toml'), 'utf8')).not.toContain(token);
}, 60_000);

test('a slot of somebody else is not replaced, and a renewed certificate is added again', async () => {
  const file = path.join(here.configDir, 'slots/gpu-box-primary.toml');
  const before = await readFile(file, 'utf8');
  if (renewed === undefined) throw new Error('not made');
  door.show(renewed);
  const again = await add(token, '--fingerprint', renewed.fingerprint, '--credential-file', '-');
  expect([again.code, await readFile(file, 'utf8')]).toEqual([0, before.replace(pin(), renewed.fingerprint)]);
  await here.until('gpu-box-primary', 'ready', isAnswering);
  await here.save('gpu-box-primary', 'backend = "cpu"\n[model]\ndefault = "demo-owl"\n');
  const { code, err } = await add(token, '--fingerprint', renewed.fingerprint, '--credential-file', '-');
  expect([code, err]).toEqual([1, expect.stringContaining('exists and is not of the peer "gpu-box"')]);
  expect(await add(token, '--fingerprint', renewed.fingerprint, '--credential-file', '-', '--force')).toMatchObject({ code: 0 });
}, 60_000);

test.each([
  ['a time that is none', ['list', '--wait', 'soon'], 'Invalid time "soon"'],
  ['a time without end', ['list', '--wait', '90d'], 'Invalid time "90d"'],
  ['a fingerprint without TLS', ['add', 'http://127.0.0.1:9', '--fingerprint', `sha256:${'0'.repeat(64)}`], 'has no certificate'],
])('%s is a mistake of usage', async (_what, args, text) => {
  expect(await run(here, args)).toMatchObject({ code: 64, err: expect.stringContaining(text) });
});

test('"remove" deletes the slots and the token, and no other slot', async () => {
  await here.save('other', 'enabled = false\nprovider = "gguf"\n[model]\ndefault = "demo-fox"\n');
  expect(await run(here, ['remove', 'gpu-box'])).toMatchObject({ code: 0, out: 'slot/gpu-box-primary deleted\n' });
  expect(await slotFiles()).toEqual(['other.toml']);
  await expect(stat(path.join(here.configDir, 'keys/gpu-box'))).rejects.toThrow('ENOENT');
  expect(await run(here, ['remove', 'gpu-box'])).toMatchObject({ code: 1, err: expect.stringContaining('No slot here is of a peer') });
}, 30_000);
