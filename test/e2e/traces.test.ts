/** Traces of a real service arrive at a collector, connected from the span of the client to the load that its request waited for. */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { startReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

const SPAN = 'b7ad6b7169203331';
const newTrace = (): string => randomBytes(16).toString('hex');
const QUICKLY = { OTEL_BSP_SCHEDULE_DELAY: '50' };

/** A server of OpenAI's API that keeps the headers of its requests. */
async function startUpstream() {
  const headers: Readonly<Record<string, unknown>>[] = [];
  const server = createServer((req, res) => {
    req.resume().on('end', () => {
      res.writeHead(200, { 'content-type': 'application/json' });
      if (req.method === 'GET') return void res.end('{"object":"list","data":[{"id":"far"}]}');
      headers.push(req.headers);
      const usage = { prompt_tokens: 11, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 5 } };
      res.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'secretanswer' } }], usage }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { server, headers, port: typeof address === 'object' && address !== null ? address.port : 0 };
}

const remoteSlot = (port: number): string =>
  `provider = "remote"\n[model]\ndefault = "far"\n[remote]\nurl = "http://127.0.0.1:${port}/v1"\nprivate = true\n`;

async function ask({ url }: Service, headers: Readonly<Record<string, string>>, body: object = {}): Promise<Response> {
  const content = 'secretquestion';
  return await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    // Each on a connection of its own, which any of the processes may take.
    headers: { 'content-type': 'application/json', connection: 'close', ...headers },
    body: JSON.stringify({ model: 'far', messages: [{ role: 'user', content }], ...body }),
  });
}

/** As Prometheus does. */
async function scrape({ url }: Service): Promise<Response> {
  const accept = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  return await fetch(`${url}/api/metrics`, { headers: { accept } });
}

describe.each([
  ['one process', '1'],
  ['two processes', '2'],
])('with %s', (_what, workers) => {
  let hub: FakeHub;
  let receiver: Receiver;
  let upstream: Awaited<ReturnType<typeof startUpstream>>;
  let service: Service;
  beforeAll(async () => {
    const fox = bufferFile(Buffer.from(encodeDemoModel('demo-fox')));
    hub = await startFakeHub({
      repos: [{ name: 'o/fox', license: 'apache-2.0', commit: 'c'.repeat(40), files: new Map([['m-Q4_K_M.gguf', fox]]) }],
    });
    receiver = await startReceiver();
    upstream = await startUpstream();
    service = await startService({
      runtime: 'process',
      environment: {
        ...QUICKLY,
        SVC_WORKERS: workers,
        HF_ENDPOINT: hub.url,
        HF_HOME: '/nonexistent',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-key=abc',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=trial',
      },
    });
    await service.save('far', remoteSlot(upstream.port));
    await service.save('primary', 'provider = "gguf"\nbackend = "cpu"\nload = "on-demand"\n[model]\ndefault = "hf:o/fox"\n');
    await service.until('far', 'ready', isAnswering);
    await service.until('primary', 'offline', (seen) => seen?.status.state === 'offline');
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await hub.close();
    receiver.close();
    upstream.server.closeAllConnections();
    upstream.server.close();
  }, 60_000);

  const spansOf = (traceId: string): readonly ReceivedSpan[] => receiver.spans.filter((span) => span.traceId === traceId);
  const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
    const found = spans.filter((span) => span.name === name);
    expect(found).toHaveLength(1);
    const [span] = found;
    if (span === undefined) throw new Error(`There is no span "${name}"`);
    return span;
  };
  async function traceOf(traceId: string): Promise<readonly ReceivedSpan[]> {
    await eventually('the trace has arrived', () => spansOf(traceId).length > 0);
    return spansOf(traceId);
  }

  test('a trace leads from the span of the client over its wait to the pass, the download and the load', async () => {
    const trace = newTrace();
    const answer = await ask(service, { traceparent: `00-${trace}-${SPAN}-01` }, { model: 'primary' });
    expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-fox']);
    const spans = await traceOf(trace);
    const request = named(spans, 'POST /v1/chat/completions');
    expect(request).toMatchObject({
      kind: 2,
      parentId: SPAN,
      status: 0,
      attributes: { 'http.route': '/v1/chat/completions', 'http.response.status_code': 200, 'svc.slot': 'primary' },
      resource: { 'service.name': 'svc', 'deployment.environment.name': 'trial' },
    });
    const wait = named(spans, 'wait');
    const load = named(spans, 'load');
    const attempt = named(spans, 'chat primary');
    expect([named(spans, 'auth'), wait, attempt].map(({ parentId }) => parentId)).toEqual(Array(3).fill(request.spanId));
    expect(load.parentId).toBe(wait.spanId);
    expect(attempt).toMatchObject({
      kind: 3,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'gguf',
        'gen_ai.request.model': 'primary',
        'gen_ai.response.model': 'hf:o/fox',
        'gen_ai.usage.output_tokens': expect.any(Number),
        'server.address': '127.0.0.1',
        'server.port': expect.any(Number),
      },
    });
    for (const child of spans) {
      expect(child.from).toBeGreaterThanOrEqual(request.from);
      expect(child.until).toBeLessThanOrEqual(request.until);
    }

    const linked = (name: string): ReceivedSpan | undefined =>
      receiver.spans.find(
        (span) => span.name === name && load.links.some(({ spanId, traceId }) => spanId === span.spanId && traceId === span.traceId),
      );
    await eventually('the load has arrived', () => linked('load primary') !== undefined);
    const loaded = linked('load primary');
    expect(loaded).toMatchObject({ status: 0, parentId: linked('reconcile pass')?.spanId, attributes: { 'svc.model': 'hf:o/fox' } });
    for (const part of ['pull', 'start', 'warm']) expect(linked(part)).toMatchObject({ parentId: loaded?.spanId });
    expect(receiver.headers[0]).toMatchObject({ 'x-key': 'abc', 'content-type': 'application/x-protobuf' });
  }, 60_000);

  test('each request on its own connection arrives, whichever process has it, and the server is told the span of its attempt', async () => {
    const traces = Array.from({ length: 20 }, newTrace);
    const answers = traces.map(async (trace) => (await ask(service, { traceparent: `00-${trace}-${SPAN}-01`, tracestate: 'v=1' })).status);
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    for (const trace of traces) {
      const attempt = named(await traceOf(trace), 'chat far');
      expect(attempt.attributes).toMatchObject({
        'gen_ai.usage.input_tokens': 11,
        'gen_ai.usage.output_tokens': 7,
        'gen_ai.usage.cache_read.input_tokens': 5,
      });
      const sent = upstream.headers.filter(({ traceparent }) => String(traceparent).includes(trace));
      expect(sent).toEqual([expect.objectContaining({ traceparent: `00-${trace}-${attempt.spanId}-01`, tracestate: 'v=1' })]);
    }
    const counted = /^svc_worker_requests_total\{[^}]*\} (\d+)/m.exec(await (await fetch(`${service.url}/api/metrics`)).text());
    expect(counted === null).toBe(workers === '1');
    if (counted !== null) expect(Number(counted[1])).toBeGreaterThan(0);
  }, 60_000);

  test('a client that does not trace its request is followed', async () => {
    const [untraced, later] = [newTrace(), newTrace()];
    expect((await ask(service, { traceparent: `00-${untraced}-${SPAN}-00` })).status).toBe(200);
    expect(upstream.headers.at(-1)).toMatchObject({ traceparent: `00-${untraced}-${SPAN}-00` });
    await ask(service, { traceparent: `00-${later}-${SPAN}-01` });
    await traceOf(later);
    expect(spansOf(untraced)).toEqual([]);
  }, 60_000);

  test.each([
    ['10 KB', `00-${'a'.repeat(10_000)}-${SPAN}-01`],
    ['zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['an unknown version', `ff-${'a'.repeat(32)}-${SPAN}-01`],
    ['nonsense', 'Hello'],
  ])(
    'a malformed header begins a new trace: %s',
    async (_case, traceparent) => {
      const requestId = `malformed-${newTrace()}`;
      expect((await ask(service, { traceparent, tracestate: 'v=1', 'x-request-id': requestId })).status).toBe(200);
      await eventually('it has arrived', () => receiver.spans.some(({ attributes }) => attributes['svc.request.id'] === requestId));
      const span = receiver.spans.find(({ attributes }) => attributes['svc.request.id'] === requestId);
      expect(span).toMatchObject({ parentId: '', traceId: expect.stringMatching(/^[0-9a-f]{32}$/) });
      const sent = upstream.headers.at(-1);
      expect(sent?.['traceparent']).toContain(span?.traceId);
      expect(sent?.['tracestate']).toBeUndefined();
    },
    30_000,
  );

  test('a request that is refused has a trace, too', async () => {
    const trace = newTrace();
    expect((await ask(service, { traceparent: `00-${trace}-${SPAN}-01`, 'content-type': 'text/plain' })).status).toBe(415);
    const spans = await traceOf(trace);
    expect(named(spans, 'POST /v1/chat/completions')).toMatchObject({ attributes: { 'http.response.status_code': 415 }, parentId: SPAN });
    expect(spans.map(({ name }) => name).toSorted()).toEqual(['POST /v1/chat/completions', 'auth']);
  }, 30_000);

  test('metrics lead to traces: the time of a request has its trace as an exemplar', async () => {
    const trace = newTrace();
    await ask(service, { traceparent: `00-${trace}-${SPAN}-01` });
    const { spanId } = named(await traceOf(trace), 'POST /v1/chat/completions');
    const response = await scrape(service);
    expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    const lines = (await response.text()).split('\n').filter((line) => line.includes(`trace_id="${trace}",span_id="${spanId}"`));
    const names = new Set(lines.map((line) => line.slice(0, line.indexOf('_bucket{'))));
    expect(names).toEqual(new Set(['svc_request_seconds', 'svc_output_tokens_per_second', 'gen_ai_client_token_usage']));
    const plain = await fetch(`${service.url}/api/metrics`);
    expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await plain.text()).not.toContain('trace_id');
  }, 30_000);

  test('nothing of a request or an answer is in a span', () => {
    const text = JSON.stringify(receiver.spans, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    expect(text).toContain('far');
    expect(text).not.toMatch(/secretquestion|secretanswer/);
  });
});

describe('a collector that does not answer', () => {
  test('loses spans and nothing else, and does not delay the end of the service', async () => {
    const receiver = await startReceiver();
    receiver.answerWith('hang');
    const upstream = await startUpstream();
    // Were the end to wait for it, that would take ten minutes.
    const environment = { ...QUICKLY, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_TIMEOUT: '600000' };
    const service = await startService({ runtime: 'process', environment });
    try {
      await service.save('far', remoteSlot(upstream.port));
      await service.until('far', 'ready', isAnswering);
      for (let round = 0; round < 20; round += 1) expect((await ask(service, {})).status).toBe(200);
      await eventually('it was asked', () => receiver.calls() > 0);
      await service.kill('SIGTERM');
    } finally {
      receiver.close();
      await service.dispose();
      upstream.server.closeAllConnections();
      upstream.server.close();
    }
  }, 90_000);
});

describe('modules of OpenTelemetry', () => {
  test.each([
    ['none is loaded without an endpoint', {}, false],
    ['none is loaded if the SDK is disabled', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_SDK_DISABLED: 'true' }, false],
    ['they are loaded otherwise', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, true],
  ])(
    '%s',
    async (_what, variables, areLoaded) => {
      const file = path.join('/tmp', `svc-modules-${newTrace()}`);
      const hook = path.resolve('test/support/list-modules.mjs');
      const environment = { ...variables, SVC_WORKERS: '2', SVC_TEST_MODULES: file, NODE_OPTIONS: `--import=${hook}` };
      const service = await startService({ runtime: 'process', environment });
      try {
        await ask(service, {});
        const modules = (await readFile(file, 'utf8')).split('\n');
        expect(modules.some((url) => url.includes('/gateway/exchange.ts'))).toBe(true);
        expect(modules.some((url) => url.includes('@opentelemetry'))).toBe(areLoaded);
        expect((await scrape(service)).headers.get('content-type')).toMatch(areLoaded ? /^application\/openmetrics/ : /^text\/plain/);
      } finally {
        await service.dispose();
      }
    },
    60_000,
  );
});
