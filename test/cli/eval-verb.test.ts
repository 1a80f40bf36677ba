/** `svcctl eval` against a server of OpenAI's API: what it prints, how it ends, and which files it reads. */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startCluster } from './cluster-fixture.ts';
import { startSvcctl, svcctl } from './run-svcctl.ts';

interface Asked {
  readonly path: string;
  readonly token: string | undefined;
  readonly text: string;
}

let dir: string;
let server: Server;
let url: string;
let asked: Asked[] = [];
/** Requests whose answers have not ended when their client left. */
let cut = 0;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-eval-'));
  server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece: Buffer) => pieces.push(piece));
    req.on('end', () => {
      const text = Buffer.concat(pieces).toString('latin1');
      asked.push({ path: req.url ?? '', token: req.headers.authorization, text });
      if (req.url === '/v1/audio/transcriptions') return void res.end('{"text": "good morning"}');
      const { model, messages, prompt, stream } = JSON.parse(text);
      if (model === 'none')
        return void res.writeHead(404).end('{"error": {"message": "No model \\"none\\"", "code": "model.not_found", "type": "x"}}');
      const content = `${model} says ${prompt ?? messages.at(-1).content}`;
      if (stream !== true) return void res.end(JSON.stringify({ choices: [{ message: { content } }] }));
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
      res.once('close', () => (cut += res.writableFinished ? 0 : 1));
      if (!content.includes('hang')) res.end('data: {"choices": [], "usage": {"completion_tokens": 7}}\n\ndata: [DONE]\n\n');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const chat = (content: string, contains: string, more: object = {}) => ({
  request: { messages: [{ role: 'user', content }] },
  expect: { contains },
  ...more,
});
const recorded = (file: string) => ({
  request: { path: '/v1/audio/transcriptions', file },
  expect: { transcript: { reference: 'Good morning', at_most: 0 } },
});

async function run(args: readonly string[], cases: readonly unknown[], input?: string) {
  asked = [];
  const file = path.join(dir, 'checks.jsonl');
  await writeFile(file, cases.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const env = { SVCCTL_SERVER: url, SVCCTL_TOKEN: 'svc_secret' };
  return await svcctl(['eval', ...args, '-f', input === undefined ? file : '-'], { env, ...(input === undefined ? {} : { input }) });
}

/** Times differ. */
const shown = (out: string): string =>
  out
    .replaceAll(/\d+(\.\d+)? (ms|s)\b/g, 'T')
    .replaceAll(/ {2,}/g, ' | ')
    .replaceAll(/\d+\.\d/g, 'N');

describe('svcctl eval', () => {
  test('prints the measures of one model, and those of another beside them, one model after the other', async () => {
    const ran = await run(['slot/primary', '--compare', 'small'], [chat('Paris', 'says Paris'), chat('Rome', 'primary')]);
    expect(shown(ran.out).split('\n')).toEqual([
      'MODEL | primary | small',
      'Passed | 2 of 2 (100 %) | 1 of 2 (50 %)',
      'First token, p95 | T | T',
      'Tokens/s | N | N',
      'Total time | T | T',
      '',
      'small: case 2',
      ' | question | Rome',
      ' | expected | contains "primary"',
      ' | answer | small says Rome',
      '',
    ]);
    expect(ran).toMatchObject({ code: 0, err: expect.stringContaining('Asking "primary" through the service, which loads it first') });
    expect(asked.map(({ text }) => JSON.parse(text).model)).toEqual(['primary', 'primary', 'primary', 'small', 'small', 'small']);
    expect(asked.every(({ token }) => token === 'Bearer svc_secret')).toBe(true);
  });

  test('waits for a model that only completes texts with a request that it can answer', async () => {
    const completion = { request: { path: '/v1/completions', prompt: 'Paris' }, expect: { matches: '^base says Paris$' } };
    expect(await run(['base'], [completion])).toMatchObject({ code: 0 });
    expect(asked.map((each) => [each.path, JSON.parse(each.text).max_tokens])).toEqual([
      ['/v1/completions', 1],
      ['/v1/completions', 1024],
    ]);
  });

  test('ends with 1 where too few pass, and where a required case does not, and says why', async () => {
    const cases = [chat('Paris', 'Paris'), chat('Rome', 'Oslo')];
    expect(await run(['primary', '--pass', '0.5'], cases)).toMatchObject({ code: 0 });
    const few = await run(['primary'], cases);
    expect(few).toMatchObject({
      code: 1,
      err: expect.stringContaining('primary is not good enough. 1 of 2 cases passed (50 %), fewer than 100 %'),
    });
    const required = await run(['primary', '--pass', '0'], [...cases, chat('Rome', 'Oslo', { required: true })]);
    expect(required).toMatchObject({ code: 1, err: expect.stringContaining('Case 3 did not pass, and is required') });
    expect(required.out).toContain('primary: case 3 (required)');
  });

  test('prints all as JSON, for cases from standard input', async () => {
    const ran = await run(['primary', '-o', 'json'], [], JSON.stringify(chat('Paris', 'Rome')));
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.out)).toEqual({
      evaluations: [
        {
          model: 'primary',
          accepted: false,
          because: '0 of 1 cases passed (0 %), fewer than 100 %',
          cases: 1,
          passed: 0,
          first_token_p95_ms: expect.any(Number),
          tokens_per_second: expect.any(Number),
          total_ms: expect.any(Number),
          misses: [{ case: 1, required: false, question: 'Paris', expectation: 'contains "Rome"', answer: 'primary says Paris' }],
        },
      ],
    });
  });

  test('prints ten misses, and how many there are', async () => {
    const { out } = await run(
      ['primary'],
      Array.from({ length: 13 }, () => chat('Paris', 'Rome')),
    );
    expect(out.match(/expected {2}/g)).toHaveLength(10);
    expect(out).toContain('\nprimary: 3 more cases did not pass\n');
  });

  test('sends a recording in the folder of the cases as a form', async () => {
    await mkdir(path.join(dir, 'sounds'), { recursive: true });
    await writeFile(path.join(dir, 'sounds/a.wav'), 'RIFF\u00fe', 'latin1');
    const sounds = { ...recorded('sounds/a.wav'), request: { ...recorded('sounds/a.wav').request, temperature: 0, language: 'en' } };
    expect(await run(['stt'], [sounds])).toMatchObject({ code: 0, out: expect.stringContaining('1 of 1 (100 %)') });
    const text = asked[0]?.text ?? '';
    expect(asked).toHaveLength(1);
    expect(text.replaceAll(/-{4,}\S+/g, '|').replaceAll('\r\n', ' ')).toMatch(
      /^\| Content-Disposition: form-data; name="model" {2}stt \|.*name="temperature" {2}0 \|.*name="language" {2}en \|.*name="file"; filename="a.wav" .* {2}RIFF\u00fe \|/,
    );
  });

  test.each([
    ['/etc/hostname', /it is not in ".*"\nhint: Move it beside the cases/],
    ['../../etc/hostname', /Could not read the recording/],
    ['leaves/hostname', /it is not in/],
    ['missing.wav', /Could not read the recording "missing\.wav": ENOENT/],
    ['sounds', /is a directory/],
  ])('sends no recording from "%s", and asks nothing', async (file, message) => {
    await mkdir(path.join(dir, 'sounds'), { recursive: true });
    await symlink('/etc', path.join(dir, 'leaves')).catch(() => undefined);
    expect(await run(['stt'], [chat('Paris', 'Paris'), recorded(file)])).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(message),
    });
    expect(asked).toEqual([]);
  });

  test('refuses what it cannot run, and asks nothing', async () => {
    expect(await run(['primary'], [{ ...chat('a', 'b'), expect: { contain: 'b' } }])).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /checks\.jsonl: Line 1: expect\.contain: Unknown key "contain"; did you mean "contains"\?.*\nhint: docs\/evaluate\.md/,
      ),
    });
    for (const share of ['2', '-1', 'x', ''])
      expect(await run(['primary', `--pass=${share}`], [chat('a', 'b')])).toMatchObject({
        code: 64,
        err: expect.stringContaining(`Invalid share "${share}"`),
      });
    expect(await run(['stt'], [], JSON.stringify(recorded('a.wav')))).toMatchObject({
      code: 64,
      err: expect.stringContaining('save the cases in a file'),
    });
    expect(await svcctl(['eval', 'primary', '-f', path.join(dir, 'none.jsonl')])).toMatchObject({
      code: 1,
      err: expect.stringContaining('Could not read the cases in'),
    });
    expect(asked).toEqual([]);
  });

  test('ends at a model that does not exist, and where there is no service', async () => {
    const cases = [chat('Paris', 'Paris'), chat('Rome', 'Rome')];
    expect(await run(['none'], cases)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/No model "none" \(model\.not_found\)\nhint: List the names/),
    });
    expect(asked).toHaveLength(1);
    const file = path.join(dir, 'checks.jsonl');
    expect(await svcctl(['eval', 'primary', '-f', file, '--server', 'http://127.0.0.1:1'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('connection refused'),
    });
  });

  test('asks a service in a cluster through the API server, and reads its errors', async () => {
    const cluster = await startCluster();
    try {
      cluster.addPod('svc-0', url);
      cluster.lead('svc-0');
      const file = path.join(dir, 'cluster.jsonl');
      await writeFile(file, JSON.stringify(chat('Paris', 'primary says Paris')));
      expect(await cluster.run(['eval', 'primary', '-f', file])).toMatchObject({ code: 0, out: expect.stringContaining('1 of 1 (100 %)') });
      expect(cluster.proxied).toEqual(Array.from({ length: 2 }, () => 'POST svc-0:8080 /v1/chat/completions'));
      await writeFile(file, '{"request": {"path": "/v1/embeddings", "input": "a"}, "expect": {"dimension": 3}}');
      expect(await cluster.run(['eval', 'none', '-f', file])).toMatchObject({
        code: 1,
        out: expect.stringContaining('status 404: No model "none"'),
      });
    } finally {
      await cluster.close();
    }
  });

  test('stops at Ctrl-C, and so does the answer', async () => {
    const file = path.join(dir, 'hang.jsonl');
    await writeFile(file, JSON.stringify(chat('hang', 'Paris')));
    const before = cut;
    asked = [];
    const child = startSvcctl(['eval', 'primary', '-f', file], { env: { SVCCTL_SERVER: url } });
    while (asked.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    const ended = once(child, 'close');
    child.kill('SIGINT');
    expect(await ended).toEqual([null, 'SIGINT']);
    while (cut === before) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});
