/** What the podman runtime makes of answers that a real podman gives only at certain moments; they come from a server on a socket. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createPodmanRuntime } from '../../../src/host/podman/podman-runtime.ts';
import type { Progress } from '../../../src/reconciler/ports.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import { eventually } from '../../support/runtimes/runtime-world.ts';

let dir: string;
let server: Server;
let container: { State: Record<string, unknown>; Config: { Labels: Record<string, string> }; Id: string };
let events: ServerResponse | undefined;
/** Lists wait for it. */
let gate: Promise<void>;
const asked: string[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-podman-'));
  container = JSON.parse(await readFile('test/host/podman/recorded/podman-4.3.1-running.json', 'utf8'));
  gate = Promise.resolve();
  asked.length = 0;
  server = createServer((request, response) => void answer(`${request.method} ${request.url?.split('?')[0]}`, response));
  await new Promise<void>((resolve) => server.listen(join(dir, 'podman.sock'), resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(dir, { recursive: true });
});

async function answer(call: string, response: ServerResponse): Promise<void> {
  asked.push(call);
  const json = (body: unknown): void => void response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  const { State } = container;
  if (call.endsWith('/events')) {
    events = response;
    response.flushHeaders();
  } else if (call.endsWith('/logs')) {
    const [head, text] = [Buffer.from([1, 0, 0, 0, 0, 0, 0, 100]), 'one\ntw'];
    response.write(Buffer.concat([head, Buffer.from(text)]), () => void setTimeout(() => response.destroy(), 50));
  } else if (call.endsWith('/containers/json')) {
    const listed = [{ Id: container.Id, State: State['Status'], StartedAt: 1, Pid: 0 }];
    await gate;
    json(listed);
  } else if (call.endsWith('/info')) json({ host: { security: { rootless: false } } });
  else if (call.includes('/images/create')) response.end(`${JSON.stringify({ error: pullError })}\n`);
  else if (call.includes('/images/')) json({ Id: `sha256:${'1234567890123'.padEnd(64, '0')}`, Config: { Env: [] } });
  else if (call.startsWith('DELETE')) json([]);
  else json(container);
}

let pullError = '';

const open = () => {
  const instance = container.Config.Labels['inference.svc.dev/instance'] ?? 'svc';
  return createPodmanRuntime({ socketPath: join(dir, 'podman.sock'), instance });
};
const signal = (): AbortSignal => AbortSignal.timeout(20_000);
const lists = (): number => asked.filter((call) => call.endsWith('/containers/json')).length;

test('a paused container is called paused', async () => {
  container.State['Status'] = 'paused';
  const facts = await open().observe([], signal());
  expect(facts).toMatchObject({
    value: {
      workloads: [{ phase: 'running', waitingReason: { message: expect.stringContaining('is paused; resume it with "podman unpause') } }],
    },
  });
});

test('a container that ended with the machine is no crash: it is removed, and its slot starts anew', async () => {
  container.State = { ...container.State, Status: 'exited', ExitCode: 143 };
  container.State['FinishedAt'] = new Date(Date.now() - uptime() * 1000 - 60_000).toISOString();
  expect(await open().observe([], signal())).toMatchObject({ value: { workloads: [] } });
  expect(asked.filter((call) => call.startsWith('DELETE'))).toHaveLength(1);
});

test('a container that ended since the machine was started has crashed', async () => {
  container.State = { ...container.State, Status: 'exited', ExitCode: 143, FinishedAt: new Date().toISOString() };
  expect(await open().observe([], signal())).toMatchObject({ value: { workloads: [{ phase: 'exited', exit: { code: 143 } }] } });
  expect(asked.filter((call) => call.startsWith('DELETE'))).toEqual([]);
});

test('an observation that an event overtook is not used again', async () => {
  const runtime = open();
  const watching = new AbortController();
  let wakes = 0;
  runtime.changes(() => (wakes += 1), watching.signal);
  await eventually('the stream of events', async () => (wakes > 0 ? true : undefined));
  await runtime.observe([], signal());
  const before = lists();
  await runtime.observe([], signal());
  expect(lists()).toBe(before);
  const change = (): void =>
    void events?.write(
      `${JSON.stringify({ Type: 'container', Action: 'died', Actor: { Attributes: { 'inference.svc.dev/slot': 'x' } } })}\n`,
    );
  const sawWakes = wakes;
  change();
  await eventually('a wake', async () => (wakes > sawWakes ? true : undefined));
  // The next list shows the state before the second event.
  let release = (): void => undefined;
  gate = new Promise((resolve) => (release = resolve));
  const overtaken = runtime.observe([], signal());
  await eventually('the list', async () => (lists() > before ? true : undefined));
  container.State = { ...container.State, Status: 'exited', ExitCode: 1, FinishedAt: new Date().toISOString() };
  const saw = wakes;
  change();
  await eventually('a wake', async () => (wakes > saw ? true : undefined));
  release();
  await overtaken;
  expect(await runtime.observe([], signal())).toMatchObject({ value: { workloads: [{ phase: 'exited' }] } });
  watching.abort();
});

test.each([
  ['reading manifest sha256:1 in registry.invalid/a: manifest unknown', 'does not have the image'],
  ['unauthorized: authentication required', 'denies access'],
  ['dial tcp: lookup registry.invalid: no such host', 'could not be pulled'],
])('a pull shows progress before its first byte, and one that fails tells what podman said: %s', async (error, what) => {
  pullError = error;
  const progress: Progress[] = [];
  const reference = 'registry.invalid/a@sha256:1';
  const pulled = await open().pull({ reference }, (step) => progress.push(step), signal());
  expect(progress).toEqual([{ what: reference, doneBytes: 0 }]);
  expect(pulled).toMatchObject({ failure: { reason: 'ImagePullFailed', message: expect.stringContaining(what) } });
  expect(pulled).toMatchObject({ failure: { message: expect.stringContaining(`(podman: ${error})`) } });
});

test('podman is asked for events as long as one of two watchers is left, and no longer', async () => {
  const runtime = open();
  const [leaves, stays] = [new AbortController(), new AbortController()];
  let wakes = 0;
  runtime.changes(() => undefined, leaves.signal);
  runtime.changes(() => (wakes += 1), stays.signal);
  await eventually('the stream of events', async () => (wakes > 0 ? true : undefined));
  leaves.abort();
  const saw = wakes;
  events?.write(`${JSON.stringify({ Type: 'container', Action: 'died', Actor: { Attributes: { 'inference.svc.dev/slot': 'x' } } })}\n`);
  await eventually('a wake', async () => (wakes > saw ? true : undefined));
  stays.abort();
  await eventually('the end of the stream', async () => (events?.closed === true ? true : undefined));
});

test('output ends where podman ends the connection, with what came before', async () => {
  const lines: string[] = [];
  for await (const { text } of open().logs(WorkloadId.parse(container.Id), { tail: 10, follow: true }, signal())) lines.push(text);
  expect(lines).toEqual(['one', 'tw']);
});

test('an image of another id than the pinned one is told by both', async () => {
  const image = { reference: 'localhost/toolbox:1', imageId: `sha256:${'a'.repeat(64)}` };
  const pulled = await open().pull(image, () => undefined, signal());
  expect(pulled).toMatchObject({
    ok: false,
    failure: { message: expect.stringContaining(`is "123456789012" in podman, but "${'a'.repeat(12)}" is pinned`) },
  });
});
