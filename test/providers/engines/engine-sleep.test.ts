/** How a declared engine's server is asked to sleep, to wake and for its requests: real HTTP, with good answers and bad ones. */
import { createServer, type ServerResponse } from 'node:http';
import { afterEach, expect, test } from '@jest/globals';
import { createProbeIo } from '../../../src/platform/probe-io.ts';
import { engineProvider } from '../../../src/providers/engines/engine-provider.ts';
import { sumMetric } from '../../../src/providers/engines/engine-sleep.ts';
import type { Endpoint } from '../../../src/providers/provider.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { specOf } from '../../support/providers/odd-models.ts';
import { shippedEngines, wholeEngine } from './engine-files.ts';

type Answer = (res: ServerResponse) => void;
const says =
  (body: string, status = 200, type = 'application/json'): Answer =>
  (res) =>
    res.writeHead(status, { 'content-type': type }).end(body);

const vllm = engineProvider(wholeEngine('vllm'));
const io = createProbeIo();
const signal = new AbortController().signal;
let close = async (): Promise<void> => undefined;
afterEach(async () => await close());

async function serve(
  answers: Readonly<Record<string, Answer>>,
): Promise<{ readonly endpoint: Endpoint; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    const line = `${req.method} ${req.url}`;
    asked.push(line);
    (answers[line] ?? says('{"detail":"Not Found"}', 404))(res);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  };
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('No port');
  return { endpoint: { host: '127.0.0.1', port: address.port }, asked };
}

test('a server is put to sleep, and then says so', async () => {
  const { endpoint, asked } = await serve({ 'POST /sleep?level=1': says(''), 'GET /is_sleeping': says('{"is_sleeping":true}') });
  expect(await vllm.sleep?.enter(endpoint, io, 5000, signal)).toBeUndefined();
  expect(asked).toEqual(['POST /sleep?level=1', 'GET /is_sleeping']);
});

test.each<[string, Readonly<Record<string, Answer>>, string]>([
  ['refuses', { 'POST /sleep?level=1': says('', 500) }, '"POST /sleep?level=1" was answered with status 500'],
  ['has no such path', {}, '"POST /sleep?level=1" was answered with status 404'],
  ['hangs', { 'POST /sleep?level=1': () => undefined }, '"POST /sleep?level=1" got no answer: No answer within 200 ms'],
  [
    'stays awake',
    { 'POST /sleep?level=1': says(''), 'GET /is_sleeping': says('{"is_sleeping":false}') },
    '"POST /sleep?level=1" succeeded, and "GET /is_sleeping" says that it does not sleep',
  ],
  [
    'says nothing that makes sense of its state',
    { 'POST /sleep?level=1': says(''), 'GET /is_sleeping': says('<html>', 200, 'text/html') },
    '"POST /sleep?level=1" succeeded, and "GET /is_sleeping" says that it does not sleep',
  ],
  ['resets the connection', { 'POST /sleep?level=1': (res) => void res.destroy() }, '"POST /sleep?level=1" got no answer: socket hang up'],
])('a server that %s was not put to sleep, with the reason', async (_what, answers, problem) => {
  const { endpoint } = await serve(answers);
  expect(await vllm.sleep?.enter(endpoint, io, 200, signal)).toBe(problem);
});

test('a server is woken by one request, whose failure is told', async () => {
  const { endpoint, asked } = await serve({ 'POST /wake_up': says('') });
  expect(await vllm.sleep?.leave(endpoint, io, 5000, signal)).toBeUndefined();
  expect(asked).toEqual(['POST /wake_up']);
  await close();
  expect(await vllm.sleep?.leave(endpoint, io, 5000, signal)).toContain('"POST /wake_up" got no answer: Connection refused');
});

test.each([
  ['{"is_sleeping":true}', 'asleep'],
  ['true', 'asleep'],
  ['{"is_sleeping":false}', 'failing'],
  ['{"is_sleeping":"true"}', 'failing'],
  ['[true]', 'failing'],
  ['', 'failing'],
])('a server whose state is %s is known as %s by its probe', async (state, kind) => {
  const { endpoint } = await serve({ 'GET /health': says(''), 'GET /is_sleeping': says(state) });
  const slot = {
    name: SlotName.parse('a'),
    spec: specOf(vllm, { resources: { memory: '8Gi' } }),
    model: { id: ModelId.parse('m'), hostPath: '/m' },
  };
  expect((await vllm.health(endpoint, io, slot, signal)).kind).toBe(kind);
  expect((await vllm.readiness?.(endpoint, io, slot, signal))?.kind).toBe(kind);
});

test('a server that can sleep gets its flag, and one on a CPU does not', () => {
  const slot = {
    name: SlotName.parse('a'),
    model: { id: ModelId.parse('m'), hostPath: '/m' },
    modelPath: '/m',
    listen: { host: 'h', port: 1 },
  };
  const commandOn = (backend: 'cuda' | 'cpu') => vllm.startCmd({ ...slot, spec: specOf(vllm, { backend, resources: { memory: '8Gi' } }) });
  expect(commandOn('cuda')).toContain('--enable-sleep-mode');
  expect(commandOn('cpu')).not.toContain('--enable-sleep-mode');
  expect(vllm.sleep?.appliesTo(specOf(vllm, { backend: 'cpu' }))).toBe(false);
  expect(vllm.sleep?.hostBytes?.(specOf(vllm), 2 ** 30)).toBeGreaterThan(2 ** 30);
});

const METRICS = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 2.0
vllm:num_requests_running{engine="1",model_name="a \\"b"} 1.0 1700000000000
vllm:num_requests_running_max 9.0
vllm:num_requests_waiting{engine="0"} 4.0
`;

test('the requests of all parts of a server are counted from its metrics, however long they are', async () => {
  const long = `${'# padding\n'.repeat(20_000)}${METRICS}`;
  const { endpoint } = await serve({ 'GET /metrics': says(long, 200, 'text/plain') });
  expect(await vllm.countRequests?.(endpoint, io, signal)).toEqual({ count: 3 });
});

test.each<[string, Readonly<Record<string, Answer>>, string]>([
  ['no metrics', {}, '"GET /metrics" was answered with status 404'],
  ['another metric only', { 'GET /metrics': says('up 1\n') }, 'has no usable metric "vllm:num_requests_running"'],
  ['a web page', { 'GET /metrics': says('<!doctype html>') }, 'has no usable metric'],
  ['no number', { 'GET /metrics': says('vllm:num_requests_running NaN\n') }, 'has no usable metric'],
  ['a negative number', { 'GET /metrics': says('vllm:num_requests_running -1\n') }, 'has no usable metric'],
  ['no answer', { 'GET /metrics': (res) => void res.destroy() }, '"GET /metrics" got no answer'],
])('a server with %s has an unknown number of requests', async (_what, answers, problem) => {
  const { endpoint } = await serve(answers);
  expect(await vllm.countRequests?.(endpoint, io, signal)).toEqual({ problem: expect.stringContaining(problem) });
});

test('a line of a megabyte without an end of its labels takes no time', () => {
  const text = `m{${'a="b",'.repeat(200_000)}`;
  const begin = performance.now();
  expect(sumMetric(`${text}\nm 1`, 'm')).toBe(1);
  expect(performance.now() - begin).toBeLessThan(2000);
});

test('paths of developers, which anybody on the machine could call, are not opened by default', () => {
  const shipped = shippedEngines().find(({ name }) => name === 'vllm');
  expect(shipped).toBeDefined();
  expect([shipped?.sleep, shipped?.env]).toEqual([undefined, { HF_HUB_OFFLINE: '1' }]);
});
