/** The real service, and a slot with a mark in its arguments, its variables, its log and the paths of the host: which scope sees which mark, over every route. */
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

const MARKS = {
  argument: 'mark-of-argument',
  edited: 'mark-of-edit',
  variable: 'mark-of-variable',
  log: 'mark-of-log',
  path: 'mark-of-path',
};
const SLOTS = ['primary', 'embed', 'broken'];
const tokens = new Map<string, string>();
let service: Service;
let dir = '';

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), `svc-${MARKS.path}-`));
  await mkdir(path.join(dir, 'models'));
  const server = path.join(dir, 'llama-server');
  await writeFile(server, `#!/bin/sh\necho "error: the key \\"${MARKS.log}\\" of $0"\nexit 3\n`);
  await chmod(server, 0o755);
  service = await startService({
    runtime: 'process',
    environment: {
      // Nobody answers there.
      HF_ENDPOINT: 'http://127.0.0.1:1',
      SVC_AUTH_ENABLED: '1',
      SVC_ALLOW_UNSAFE_EDITS: '1',
      SVC_STATE_DIR: path.join(dir, 'state'),
      PATH: `${dir}:${process.env['PATH'] ?? ''}`,
    },
  });
  for (const scope of ['admin', 'all', 'v1-only', 'read-only']) tokens.set(scope, createToken(scope));
  const model = `[model]\ndefault = "demo-fox"\nargs = ["--api-key", "${MARKS.argument}", "--hf-token=${MARKS.argument}"]`;
  await service.save('primary', `backend = "cpu"\n${model}\n[env]\nHF_TOKEN = "${MARKS.variable}"\nCACHE = "/srv/${MARKS.path}"\n`);
  await service.save('embed', `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "/srv/${MARKS.path}/a.gguf"\n`);
  await service.save('broken', `provider = 5\n[env]\nHF_TOKEN = "${MARKS.variable}"\n`);
  await eventually('the slot has crashed', async () => (await get('/api/slots/primary/explain', 'admin')).includes(MARKS.log), 60_000);
  const edit = { spec: { model: { args: ['--api-key', MARKS.edited] } } };
  const edited = await send('/api/slots/primary', 'admin', { method: 'PATCH', body: JSON.stringify(edit) });
  expect(edited.status).toBe(200);
  const profile = { slots: [{ name: 'primary', spec: JSON.parse(await get('/api/slots/primary', 'admin')).spec }] };
  expect((await send('/api/profiles/now', 'admin', { method: 'PUT', body: JSON.stringify(profile) })).status).toBe(201);
  await eventually('the slot is stalled', async () => (await get('/api/slots/primary', 'admin')).includes('CrashLoop'), 120_000);
}, 240_000);
afterAll(async () => {
  await service.dispose();
  await rm(dir, { recursive: true, force: true });
}, 60_000);

function createToken(scope: string): string {
  const args = ['src/cli/svcctl.mjs', 'token', 'create', '--label', scope, '--scope', scope];
  return execFileSync(process.execPath, args, { env: { ...ownEnvironment(), ...service.environment }, encoding: 'utf8' }).trim();
}

async function send(route: string, scope: string, init: RequestInit = {}): Promise<Response> {
  const token = tokens.get(scope);
  const headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  return await fetch(`${service.url}${route}`, { headers, ...init });
}
const get = async (route: string, scope: string): Promise<string> => (await send(route, scope)).text();

/** Everything that is still retained: the stream itself does not end. */
async function events(scope: string): Promise<string> {
  const stop = new AbortController();
  const answer = await send('/api/events?last_event_id=0', scope, { signal: stop.signal });
  const last = (await get('/api/slots/primary/timeline?limit=1', 'admin')).match(/"seq":(\d+)/)?.[1] ?? '';
  let text = '';
  if (answer.ok)
    for await (const chunk of answer.body ?? []) if ((text += Buffer.from(chunk).toString()).includes(`id: ${last}\nevent`)) break;
  stop.abort();
  return text;
}

const QUERIES: Readonly<Record<string, string>> = {
  '/api/fit': '/api/fit?model=nope.gguf',
  '/api/models/search': '/api/models/search?q=nope',
};

/** The answers of every route for reading, by route. */
async function everything(scope: string): Promise<ReadonlyMap<string, string>> {
  const { paths }: { paths: Record<string, Record<string, unknown>> } = JSON.parse(await get('/api/openapi.json', 'admin'));
  const routes = Object.entries(paths)
    .filter(([route, methods]) => 'get' in methods && route !== '/api/events')
    .flatMap(([route]) =>
      route.includes('{name}') && route.includes('/slots/') ? SLOTS.map((slot) => route.replace('{name}', slot)) : [route],
    )
    .map((route) => route.replace('{name}', 'now').replace('{id}', 'demo-fox').replace('{file}', 'x.png'));
  const answers = new Map<string, string>();
  for (const route of routes) answers.set(route, await get(QUERIES[route] ?? route, scope));
  answers.set('/api/events', await events(scope));
  const chat = { method: 'POST', body: '{"model":"primary","messages":[{"role":"user","content":"Hello"}]}' };
  answers.set('/v1/chat/completions', await (await send('/v1/chat/completions', scope, chat)).text());
  return answers;
}

const seen = (answers: ReadonlyMap<string, string>, mark: string): readonly string[] =>
  [...answers].filter(([, text]) => text.includes(mark)).map(([route]) => route);

test.each(['read-only', 'v1-only', 'none'])(
  'the scope "%s" sees no mark in any answer',
  async (scope) => {
    const answers = await everything(scope);
    expect(answers.size).toBeGreaterThan(25);
    expect(Object.fromEntries(Object.entries(MARKS).map(([what, mark]) => [what, seen(answers, mark)]))).toEqual({
      argument: [],
      edited: [],
      variable: [],
      log: [],
      path: [],
    });
  },
  60_000,
);

test('the scope "all" sees log lines and paths, and no values of arguments and variables', async () => {
  const answers = await everything('all');
  expect([...seen(answers, MARKS.argument), ...seen(answers, MARKS.edited), ...seen(answers, MARKS.variable)]).toEqual([]);
  expect(seen(answers, MARKS.log)).toEqual(
    expect.arrayContaining(['/api/slots/primary/explain', '/api/slots/primary/logs', '/api/events']),
  );
  expect(seen(answers, MARKS.path)).toContain('/api/providers');
}, 60_000);

test('the scope "admin" sees documents as they are, and no message repeats an argument or a variable', async () => {
  const answers = await everything('admin');
  const history = '/api/slots/primary/revisions';
  const documents = ['/api/profiles/now', '/api/slots', '/api/slots/primary', history, '/api/slots/primary/text'];
  expect(seen(answers, MARKS.edited).toSorted()).toEqual(documents);
  expect(seen(answers, MARKS.variable).toSorted()).toEqual([...documents, '/api/slots/broken', '/api/slots/broken/text'].toSorted());
  expect(seen(answers, MARKS.argument)).toEqual([history]);
  expect(seen(answers, MARKS.log)).toContain('/api/slots/primary/explain');
  expect(service.output()).not.toMatch(new RegExp([MARKS.argument, MARKS.edited, MARKS.variable].join('|')));
}, 60_000);

test('without authentication, everyone is an administrator', async () => {
  const open = await startService({ runtime: 'process' });
  try {
    await open.save(
      'primary',
      `enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--api-key", "${MARKS.argument}"]\n`,
    );
    const shown = async (): Promise<string> => (await fetch(`${open.url}/api/slots/primary`)).text();
    await eventually('the slot is there', async () => (await shown()).includes(MARKS.argument), 60_000);
  } finally {
    await open.dispose();
  }
}, 120_000);
