/** A server that still answers `/health` and hangs on everything else, as after a deadlock, beside one that is only busy. A stand-in for llama-server, found on the `PATH`. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isAnswering, startService, type Service } from '../support/service.ts';

/** Waits for ever while the file `hang` exists; computes for so long before a chat is answered. */
const SERVER = `#!${process.execPath}
const { createServer } = require('node:http');
const { existsSync } = require('node:fs');
const { Worker } = require('node:worker_threads');
const port = Number(process.argv[process.argv.indexOf('--port') + 1]);
if (process.argv.includes('--list-devices')) console.log('Available devices:');
else createServer(async (request, response) => {
  const answer = (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  if (request.method === 'GET') return answer({ status: 'ok' });
  let text = '';
  for await (const bytes of request) text += bytes;
  if (existsSync(__dirname + '/hang')) return;
  const busyMs = Number(/busy for (\\d+)/.exec(text)?.[1] ?? 0);
  if (busyMs > 0) {
    globalThis.busy = new Promise((done) => new Worker('for (const until = Date.now() + ' + busyMs + '; Date.now() < until; );', { eval: true }).on('exit', done));
  }
  await globalThis.busy;
  answer({ choices: [{ index: 0, text: 'Hi', message: { role: 'assistant', content: 'pid ' + process.pid }, finish_reason: 'stop' }] });
}).listen(port, '127.0.0.1');
`;

let service: Service;
let programs: string;

beforeAll(async () => {
  programs = await mkdtemp(join(tmpdir(), 'svc-hung-'));
  await writeFile(join(programs, 'llama-server'), SERVER);
  await chmod(join(programs, 'llama-server'), 0o755);
  service = await startService({ runtime: 'process', environment: { PATH: `${programs}:${process.env['PATH']}` } });
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  await service.until('primary', 'ready', isAnswering);
}, 120_000);
afterAll(async () => {
  await service.dispose();
  await rm(programs, { recursive: true });
}, 60_000);

const contentOf = async (answer: Response): Promise<string> => JSON.parse(await answer.text()).choices[0].message.content;

test('a server that computes one answer for longer stays, though no probe of its model is answered meanwhile', async () => {
  const before = await contentOf(await service.chat());
  const answer = await service.chat({ messages: [{ role: 'user', content: 'busy for 35000' }] });
  expect(await contentOf(answer)).toBe(before);
}, 90_000);

test('a server that hangs is replaced, and the request that hung on it is answered by the next one', async () => {
  const before = await contentOf(await service.chat());
  await writeFile(join(programs, 'hang'), '');
  const hanging = service.chat();
  const told = await service.until(
    'primary',
    'unsure',
    (slot) => slot?.status.conditions.some(({ status, type }) => type === 'Ready' && status === 'Unknown') === true,
  );
  expect(JSON.stringify(told.status.conditions)).toContain('answers \\"GET /health\\" and no other request, and computes nothing');
  await service.until('primary', 'away', (slot) => !isAnswering(slot));
  await rm(join(programs, 'hang'));
  expect(await contentOf(await hanging)).not.toBe(before);
}, 90_000);
