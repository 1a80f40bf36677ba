/** A service that may open few files, under more requests than it has descriptors. A stand-in for llama-server, found on the `PATH`. */
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isAnswering, pause, startService, type Service } from '../support/service.ts';

const DESCRIPTORS = 1024;
const REQUESTS = 1100;
const SLOTS = ['primary', 'other'];

/** Answers chats once the file `go` exists, so that all requests are open at once. Notes each start. */
const SERVER = `#!${process.execPath}
const { createServer } = require('node:http');
const { appendFileSync, existsSync } = require('node:fs');
const port = Number(process.argv[process.argv.indexOf('--port') + 1]);
if (process.argv.includes('--list-devices')) console.log('Available devices:');
else {
  appendFileSync(__dirname + '/starts', process.pid + '\\n');
  createServer(async (request, response) => {
    const answer = (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (request.method === 'GET') return answer({ status: 'ok' });
    let text = '';
    for await (const bytes of request) text += bytes;
    while (text.includes('wait') && !existsSync(__dirname + '/go')) await new Promise((done) => setTimeout(done, 50));
    answer({ choices: [{ index: 0, text: 'Hi', message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }] });
  }).listen(port, '127.0.0.1');
}
`;

let service: Service;
let programs: string;

beforeAll(async () => {
  programs = await mkdtemp(join(tmpdir(), 'svc-few-'));
  await writeFile(join(programs, 'llama-server'), SERVER);
  await chmod(join(programs, 'llama-server'), 0o755);
  const environment = { PATH: `${programs}:${process.env['PATH']}`, SVC_PARK_TIMEOUT: '300s' };
  service = await startService({ runtime: 'process', descriptors: DESCRIPTORS, environment });
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  await service.save('other', 'backend = "cpu"\n[model]\ndefault = "demo-owl"\n');
  for (const slot of SLOTS) await service.until(slot, 'ready', isAnswering);
}, 180_000);
afterAll(async () => {
  await service.dispose();
  await rm(programs, { recursive: true });
}, 60_000);

const starts = async (): Promise<readonly string[]> => (await readFile(join(programs, 'starts'), 'utf8')).trim().split('\n');

/** The records of processes by file. */
async function records(): Promise<Readonly<Record<string, string>>> {
  const directory = join(service.environment['SVC_STATE_DIR'] ?? '', 'run');
  const files = (await readdir(directory)).toSorted();
  return Object.fromEntries(await Promise.all(files.map(async (file) => [file, await readFile(join(directory, file), 'utf8')])));
}

/** The running processes of this service's slots. */
async function serverPids(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const own = `INFERENCE_SVC_DEV_PROCESS={"stateDir":${JSON.stringify(service.environment['SVC_STATE_DIR'])}`;
  const found = pids.map(async (pid) => ((await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).includes(own) ? pid : []));
  return (await Promise.all(found)).flat().toSorted();
}

async function ask(): Promise<number | 'cut'> {
  const answer = await service.chat({ messages: [{ role: 'user', content: 'wait' }] }).catch(() => undefined);
  await answer?.text().catch(() => undefined);
  return answer?.status ?? 'cut';
}

test('under more requests than descriptors, no server is taken for gone or started twice, no record goes, and a stop leaves nothing', async () => {
  const before = { pids: await serverPids(), records: await records(), starts: await starts() };
  expect(before.pids).toHaveLength(2);
  expect(Object.keys(before.records)).toEqual(['svc-slot-other.json', 'svc-slot-primary.json']);

  let answered = 0;
  const asked = Array.from({ length: REQUESTS }, async () => {
    const status = await ask();
    answered += 1;
    return status;
  });
  // Some are refused; what remains is held by the server until the end. Passes go on meanwhile.
  let most = 0;
  for (let look = 0; look < 20 || most <= DESCRIPTORS / 2; look += 1) {
    expect([await serverPids(), await records()]).toEqual([before.pids, before.records]);
    const descriptors = await readdir(`/proc/${service.pid()}/fd`);
    most = Math.max(most, descriptors.length);
    await pause(250);
  }
  expect(answered).toBeLessThan(REQUESTS);
  await writeFile(join(programs, 'go'), '');
  const statuses = await Promise.all(asked);
  expect(statuses.filter((status) => status !== 200 && status !== 503 && status !== 'cut')).toEqual([]);
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(DESCRIPTORS / 4);

  for (const slot of SLOTS) expect((await service.until(slot, 'ready', isAnswering)).status.restarts).toBe(0);
  expect({ pids: await serverPids(), records: await records(), starts: await starts() }).toEqual(before);
  expect((await service.chat()).status).toBe(200);
  await service.kill('SIGTERM');
  expect(await serverPids()).toEqual([]);
}, 300_000);
