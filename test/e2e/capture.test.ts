/** Captures of a real service: what they contain, who can read it, and what is left after a kill. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { svcctl, type Ran } from '../cli/run-svcctl.ts';
import { post } from '../gateway/support/client.ts';
import { startCounting } from '../support/counting-server.ts';
import { eventually } from '../support/eventually.ts';
import { startService, type Service } from '../support/service.ts';

const REQUESTS = 24;
const PRIVATE = 'nobodyshouldknow';

interface CapturedLine {
  readonly caller: string;
  readonly request: { readonly headers: readonly (readonly [string, string])[]; readonly body: string };
  readonly answer: { readonly body: string };
}

describe.each([
  ['one process', '1'],
  ['two processes', '2'],
])('with %s', (_what, workers) => {
  let service: Service;
  let upstream: Awaited<ReturnType<typeof startCounting>>;
  let keyFile: string;
  let admin: string;
  const tokens: Record<string, string> = {};

  const run = async (args: string): Promise<Ran> => await svcctl(args.split(' '), { env: service.environment });
  const token = async (label: string, scope: string): Promise<string> =>
    (await run(`token create --label ${label} --scope ${scope}`)).out.trim();

  beforeAll(async () => {
    upstream = await startCounting();
    service = await startService({ runtime: 'process', environment: { SVC_WORKERS: workers, SVC_AUTH_ENABLED: '1' } });
    admin = await token('boss', 'admin');
    for (const label of ['laptop', 'phone']) tokens[label] = await token(label, 'v1-only');
    const remote = `url = "http://127.0.0.1:${upstream.port}/v1"\nprivate = true\n`;
    await service.save('primary', `provider = "remote"\n[model]\ndefault = "counting"\n[remote]\n${remote}`);
    await eventually('it is ready', async () => (await run('wait slot/primary --for condition=Ready --timeout 60s')).code === 0);
    keyFile = join(service.dir, 'key');
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    upstream.server.closeAllConnections();
    upstream.server.close();
  }, 60_000);

  const bodyOf = (content: string, more: object = {}): string =>
    JSON.stringify({ model: 'primary', messages: [{ role: 'user', content }], note: PRIVATE, ...more });
  /** Each on a connection of its own, so that every process gets some. */
  const ask = async (label: string, body: string): Promise<string> => {
    const headers = { authorization: `Bearer ${tokens[label]}` };
    const answer = await post(Number(new URL(service.url).port), '/v1/chat/completions', body, { headers });
    expect(answer.status).toBe(200);
    return answer.text;
  };

  async function start(args: string): Promise<string> {
    const started = await run(`capture start ${args}`);
    expect(started).toMatchObject({ code: 0, err: expect.stringContaining('shown once') });
    await writeFile(keyFile, started.out, { mode: 0o600 });
    return /capture show ([0-9a-f]{16}) /.exec(started.err)?.[1] ?? '';
  }
  const running = async (): Promise<unknown> =>
    JSON.parse(await (await fetch(`${service.url}/api/status`, { headers: { authorization: `Bearer ${admin}` } })).text()).captures;
  const show = async (id: string): Promise<Ran> => await run(`capture show ${id} --key-file ${keyFile}`);
  const linesOf = ({ out }: Ran): readonly CapturedLine[] =>
    out
      .split('\n')
      .slice(0, -1)
      .map((line): CapturedLine => JSON.parse(line));

  test('requests and streams of one caller are captured in every process, and only the key opens them', async () => {
    const id = await start(`--caller laptop --requests ${REQUESTS} --for 10m`);
    expect(await running()).toBe(1);
    expect((await run('get slots')).err).toContain('recorded by a capture');
    const bodies = Array.from({ length: REQUESTS }, (_, n) => bodyOf(`say ${n + 1}`, n % 2 === 0 ? {} : { stream: true }));
    const [answers] = await Promise.all([
      Promise.all(bodies.map(async (body) => await ask('laptop', body))),
      Promise.all(bodies.slice(0, 6).map(async (body) => await ask('phone', body))),
    ]);
    await eventually('it has ended', async () => (await running()) === 0);
    await ask('laptop', bodyOf('say 1 more'));

    const shown = await show(id);
    expect(shown).toMatchObject({ code: 0, err: 'The capture has ended: it has all of its requests\n' });
    const lines = linesOf(shown);
    expect(new Map(lines.map(({ request, answer }) => [request.body, answer.body]))).toEqual(
      new Map(bodies.map((body, index) => [body, answers[index]])),
    );
    for (const { caller, request } of lines) {
      expect(caller).toMatch(/^token:[0-9a-f]{8}$/);
      expect(request.headers).toContainEqual(['authorization', '(hidden)']);
    }
    expect(shown.out).not.toContain(tokens['laptop']);
    expect((await run('audit')).out).toMatch(new RegExp(`started the capture "${id}"[\\s\\S]*read the file of the capture "${id}"`));

    const directory = join(service.dir, 'state', 'captures');
    expect(await readdir(directory)).toEqual([`${id}.svcc`]);
    expect([(await stat(directory)).mode & 0o777, (await stat(join(directory, `${id}.svcc`))).mode & 0o777]).toEqual([0o700, 0o600]);
    const key = (await readFile(keyFile, 'utf8')).trim();
    for (const text of [service.output(), ...(await textsIn(join(service.dir, 'state')))]) {
      expect(text.includes(key)).toBe(false);
      expect(text.includes(PRIVATE)).toBe(false);
    }
    expect(await run(`capture delete ${id}`)).toMatchObject({ code: 0 });
    expect(await readdir(directory)).toEqual([]);
  }, 120_000);

  test('a caller without the scope "admin" neither starts, lists nor reads captures', async () => {
    const reader = await token('reader', 'all');
    for (const args of ['start --slot primary', 'list', 'show 0123456789abcdef --key-file KEY', 'delete 0123456789abcdef']) {
      const ran = await svcctl(['capture', ...args.replace('KEY', keyFile).split(' ')], {
        env: { ...service.environment, SVCCTL_SERVER: service.url, SVC_TOKEN: reader },
      });
      expect(ran).toMatchObject({ code: 1, out: '', err: expect.stringContaining('admin') });
    }
  }, 60_000);

  test('after a kill nothing is captured, what was written can be read, and terminals are not controlled by it', async () => {
    const id = await start('--slot primary');
    const body = bodyOf('say 1 \u009B31m \u202Ereversed');
    await ask('phone', body);
    await eventually('it is written', async () => linesOf(await show(id)).length === 1);
    const streaming = ask('laptop', bodyOf('hang 3', { stream: true })).catch(() => undefined);
    await eventually('the stream is in flight', () => upstream.open() > 0);
    await service.kill('SIGKILL');
    await streaming;
    await service.start();
    expect(await running()).toBe(0);
    await eventually('the local socket listens again', async () => (await run('capture list')).code === 0);
    expect(await run('capture list')).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(new RegExp(`\\n${id} +any +primary +ended `)),
    });
    const shown = await show(id);
    expect(shown).toMatchObject({ code: 1, err: expect.stringContaining('It has no end') });
    expect(linesOf(shown).map(({ request }) => request.body)).toEqual([body]);
    expect(shown.out).not.toMatch(/[\u0080-\u009F\u202E]/);
  }, 120_000);
});

async function textsIn(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.length < 100);
  return await Promise.all(files.map(async ({ parentPath, name }) => await readFile(join(parentPath, name), 'latin1')));
}
