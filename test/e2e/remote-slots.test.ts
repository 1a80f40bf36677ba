/** Slots whose server is another service, behind TLS and a token: trust, streams, swaps, outages and loops, also with worker processes. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { DEMO_SENTENCES, demoModelPath } from '../../toolboxes/demo/demo-models.ts';
import { freePort } from '../support/free-port.ts';
import { makeCertificate, openDoor, type Certificate, type Door } from '../support/https-door.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, pause, startService, type Service } from '../support/service.ts';

const TOKEN = 'a-token-that-nobody-may-see';
let there: Service;
let here: Service;
let door: Door;
let [first, second]: Certificate[] = [];

/** As users write it. */
const remoteTo = (port: number, more: string, model = 'primary'): string =>
  `provider = "remote"\n[model]\ndefault = "${model}"\n[remote]\nurl = "https://localhost:${port}/v1"\nprivate = true\n${more}`;
const secrets = ({ fingerprint }: Certificate): string =>
  `credential_file = "${path.join(here.dir, 'token')}"\nfingerprint = "${fingerprint}"\n`;
const pinned = (certificate: Certificate): string => remoteTo(door.port, secrets(certificate));
const certificates = () => {
  if (first === undefined || second === undefined) throw new Error('not made');
  return { first, second };
};

beforeAll(async () => {
  there = await startService({ runtime: 'process' });
  await there.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  await there.until('primary', 'ready', isAnswering);
  here = await startService({ runtime: 'process', environment: { SVC_WORKERS: '2' } });
  await mkdir(path.join(here.dir, 'tls'));
  [first, second] = await Promise.all(['first', 'second'].map(async (name) => await makeCertificate(path.join(here.dir, 'tls'), name)));
  door = await openDoor(there.url, certificates().first, TOKEN);
  await writeFile(path.join(here.dir, 'token'), `${TOKEN}\n`);
}, 120_000);
afterAll(async () => {
  await door.close();
  await Promise.all([here.dispose(), there.dispose()]);
}, 60_000);

const because = (reason: string) => (slot: Parameters<typeof condition>[0]) => condition(slot, 'Reconciling')?.reason === reason;
const ask = async (body: object = {}, signal?: AbortSignal): Promise<Response> => await here.chat({ model: 'big', ...body }, signal);

test('a certificate that nobody signed is not trusted, and the slot says with which fingerprint it would be', async () => {
  const { first: shown, second: other } = certificates();
  await here.save('big', remoteTo(door.port, ''));
  const unknown = await here.until('big', 'not trusted', because('RemoteUntrusted'));
  expect(unknown.status.state).toBe('starting');
  const refused = await ask();
  expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: 'slot.loading' } }]);
  expect(condition(unknown, 'Reconciling')?.message).toContain(`or "remote.fingerprint" to "${shown.fingerprint}"`);
  await here.save('big', pinned(other));
  const wrong = await here.until(
    'big',
    'pinned wrongly',
    (slot) => condition(slot, 'Reconciling')?.message.includes('and not the one') === true,
  );
  expect(condition(wrong, 'Reconciling')?.message).toContain(shown.fingerprint);
  expect(door.requests()).toBe(0);
}, 60_000);

test('a pinned certificate, or the file with it, makes the slot ready, and chats are answered from there', async () => {
  await here.save('big', remoteTo(door.port, `credential_file = "${here.dir}/token"\nca_file = "${certificates().first.certFile}"\n`));
  await here.until('big', 'ready', isAnswering);
  await here.save('big', pinned(certificates().first));
  await here.until('big', 'ready', isAnswering);
  const answer = await ask();
  expect(answer.status).toBe(200);
  expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-fox']);
  const sent = door.headersOf('/v1/chat/completions');
  expect(sent).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'x-svc-hop': expect.stringMatching(/^[0-9a-f-]{36}$/) });
  const models = JSON.parse(await (await fetch(`${here.url}/v1/models`)).text());
  expect(models.data).toContainEqual(
    expect.objectContaining({ slot: 'big', capabilities: expect.arrayContaining(['chat', 'completion']) }),
  );
}, 60_000);

test('the official client of OpenAI streams through it, and may leave in the middle', async () => {
  const client = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const stream = await client.chat.completions.create({ model: 'big', messages: [{ role: 'user', content: 'Hi' }], stream: true });
  const text: string[] = [];
  for await (const chunk of stream) text.push(chunk.choices[0]?.delta.content ?? '');
  expect(text.join('').trim()).toBe(DEMO_SENTENCES['demo-fox']);
  expect(text.length).toBeGreaterThan(3);

  await there.save('clock', 'backend = "cpu"\n[model]\ndefault = "demo-clock"\n');
  await here.save('clock', remoteTo(door.port, secrets(certificates().first), 'clock'));
  await there.until('clock', 'ready', isAnswering);
  await here.until('clock', 'ready', isAnswering);
  const endless = await client.chat.completions.create({ model: 'clock', messages: [{ role: 'user', content: 'Hi' }], stream: true });
  for await (const _chunk of endless) {
    await there.until('clock', 'serving', (slot) => slot?.status.state === 'serving');
    break;
  }
  await there.until('clock', 'no longer serving', (slot) => slot?.status.state !== 'serving', 5000);
  await Promise.all([there.remove('clock'), here.remove('clock')]);
}, 60_000);

test('a certificate that changes while requests come is refused with its fingerprint, and requests wait until it is back', async () => {
  door.show(certificates().second);
  const slot = await here.until('big', 'not trusted', because('RemoteUntrusted'));
  expect(condition(slot, 'Reconciling')?.message).toContain(certificates().second.fingerprint);
  const waiting = ask();
  door.show(certificates().first);
  expect(await chatText(await waiting)).toBe(DEMO_SENTENCES['demo-fox']);
}, 60_000);

/** `SVC_TEST_SWAPS=100` takes two minutes. */
const swaps = Number(process.env['SVC_TEST_SWAPS'] ?? 10);

test(
  'no request is lost while the model there is swapped',
  async () => {
    const answers: number[] = [];
    let isOver = false;
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const answer = await ask({ max_tokens: 4 });
        answers.push(answer.status);
        await answer.text();
      }
    });
    for (let swap = 0; swap < swaps; swap += 1) {
      const model = swap % 2 === 0 ? 'demo-owl' : 'demo-fox';
      await there.save('primary', `backend = "cpu"\n[model]\ndefault = "${model}"\n`);
      await there.until('primary', model, (slot) => slot?.status.model === model && isAnswering(slot));
      await pause(100);
    }
    isOver = true;
    await Promise.all(clients);
    expect(answers.filter((status) => status !== 200)).toEqual([]);
    expect(answers.length).toBeGreaterThan(swaps);
  },
  60_000 + swaps * 6000,
);

test('a remote that is killed makes requests wait, and they are answered when it is back', async () => {
  await there.kill('SIGKILL');
  await here.until('big', 'away', because('RemoteUnreachable'));
  const waiting = ask();
  await there.start();
  expect(await chatText(await waiting)).toBe(DEMO_SENTENCES['demo-fox']);
  const slot = await here.until('big', 'ready', isAnswering);
  expect(slot.status.restarts).toBe(0);
}, 60_000);

test('a service that is started again has its remote at once', async () => {
  await here.kill('SIGKILL');
  await here.start();
  await here.until('big', 'ready', isAnswering);
  expect((await ask()).status).toBe(200);
}, 60_000);

test('a token that is wrong is a problem of the slot and not of the client, and a new one is used without an edit', async () => {
  const file = path.join(here.dir, 'token');
  await writeFile(file, 'another');
  expect(await errorOf(await ask())).toMatchObject({
    status: 502,
    code: 'upstream.failed',
    message: expect.stringContaining('status 401'),
  });
  const slot = await here.until('big', 'refused', because('RemoteRefuses'));
  expect(slot.status.state).toBe('starting');
  await writeFile(file, TOKEN);
  await here.until('big', 'ready', isAnswering);
  expect((await ask()).status).toBe(200);
}, 60_000);

const errorOf = async (answer: Response) => ({ status: answer.status, ...JSON.parse(await answer.text()).error });

test('slots of two services that lead to each other are refused before the request goes round', async () => {
  await there.save('circle', `provider = "remote"\n[model]\ndefault = "round"\n[remote]\nurl = "${here.url}"\nprivate = true\n`);
  await here.save('round', `provider = "remote"\n[model]\ndefault = "circle"\n[remote]\nurl = "${there.url}"\nprivate = true\n`);
  await there.until('circle', 'ready', isAnswering);
  await here.until('round', 'ready', isAnswering);
  const answer = await here.chat({ model: 'round' });
  expect(await errorOf(answer)).toMatchObject({ status: 508, code: 'request.loop' });
  await Promise.all([there.remove('circle'), here.remove('round')]);
}, 60_000);

test('what only the remote knows is never shown: its token is in no status, log, plan or record', async () => {
  const pages = [
    '/api/slots/big',
    '/api/slots',
    '/api/status',
    '/api/slots/big/explain',
    '/api/slots/big/timeline',
    '/metrics',
    '/api/providers',
  ];
  const texts = await Promise.all(pages.map(async (page) => await (await fetch(here.url + page)).text()));
  for (const text of texts) expect(text.length).toBeGreaterThan(1);
  expect([...texts, here.output()].join('\n')).not.toContain(TOKEN);
}, 60_000);

describeWithPodmanSlots('a plain llama-server as a remote of a service with the runtime "podman"', () => {
  let service: Service;
  let server: ChildProcess;

  beforeAll(async () => {
    service = await startService({ runtime: 'podman' });
    const port = await freePort();
    const model = path.join(there.modelsDir, demoModelPath('demo-fox'));
    const [program, args] = [path.join(await directoryOfLlamaServer(), 'llama-server'), ['-m', model, '--alias', 'fox', '-t', '1']];
    server = spawn(program, [...args, '--port', String(port)], { stdio: 'ignore' });
    await service.save(
      'big',
      `provider = "remote"\n[model]\ndefault = "fox"\n[remote]\nurl = "http://127.0.0.1:${port}"\nprivate = true\n`,
    );
  }, 120_000);
  afterAll(async () => {
    server.kill('SIGKILL');
    await service.dispose();
  }, 60_000);

  test('answers without an image, and leaves clients the errors that are theirs', async () => {
    await service.until('big', 'ready', isAnswering);
    expect(await chatText(await service.chat({ model: 'big' }))).toBe(DEMO_SENTENCES['demo-fox']);
    const mistake = await service.chat({ model: 'big', messages: 'none' });
    expect([mistake.status, (await errorOf(mistake)).origin]).toEqual([400, 'upstream']);
  }, 60_000);
});
