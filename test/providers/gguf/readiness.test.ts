/** What counts as nonsense. The answers were recorded from llama-server 0.7.0 (upstream b11669) and shortened, unless a comment says otherwise. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { createProbeIo } from '../../../src/platform/probe-io.ts';
import { checksFor, deriveReadiness, worstOf } from '../../../src/providers/gguf/decide/derive-health.ts';
import { ggufModel } from '../../../src/providers/gguf/decide/gguf-model.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import type { Health, ModelFacts, ProbeIo } from '../../../src/providers/provider.ts';
import { CAUSAL, contextOf, ENCODER, saying } from './slot-context.ts';

const LOWEST = -3.4028234663852886e38;
const top = (logprobs: readonly (number | null)[]) => logprobs.map((logprob, id) => ({ id, token: '', bytes: [], logprob }));
const completion = (text: string, logprob: number | null, others: readonly (number | null)[], finish = 'length') => ({
  choices: [
    {
      text,
      index: 0,
      logprobs: { content: [{ id: 30, token: text, bytes: [23], logprob, top_logprobs: top([logprob, ...others]) }] },
      finish_reason: finish,
    },
  ],
  object: 'text_completion',
  usage: { completion_tokens: 1, prompt_tokens: 3, total_tokens: 4 },
});
const nine = <T>(value: T): readonly T[] => Array.from({ length: 9 }, () => value);
const embedding = (vector: unknown) => ({ object: 'list', data: [{ embedding: vector, index: 0, object: 'embedding' }] });
const base64 = (values: readonly number[]): string => Buffer.from(Float32Array.from(values).buffer).toString('base64');
const rerank = (...scores: readonly (number | null)[]) => ({
  object: 'list',
  results: scores.map((score, index) => ({ index, relevance_score: score })),
});
const plain = (text: string, finish = 'length') => ({ choices: [{ text, index: 0, logprobs: null, finish_reason: finish }] });
const THREE = saying(ENCODER, { embeddingLength: 3 });

const judge = (check: 'completion' | 'embedding' | 'rerank', body: unknown, model: ModelFacts = THREE): Health =>
  deriveReadiness(check, { status: 200, body: typeof body === 'string' ? body : JSON.stringify(body) }, ggufModel(model), 'vulkan');

describe('an answer that a sound model may give passes', () => {
  test.each([
    ['completion', 'a word', completion('The', 0, nine(LOWEST))],
    ['completion', 'the end of the text as the first token', completion('', 0, nine(LOWEST), 'stop')],
    ['completion', 'no text, as for half of a character', completion('', -0.3, [-1.5, -4, ...nine(-9).slice(2)])],
    ['completion', 'a token of a reasoning model', completion('<think>', -0.01, nine(-7))],
    ['completion', 'a character without width', completion('\u200b', -2.1, nine(-3))],
    ['completion', 'an unlikely token, where all are', completion('a', -6.5, [-6.6, ...nine(-7).slice(1)])],
    ['completion', 'two tokens that are equally probable', completion('a', -0.69, [-0.69, ...nine(-20).slice(1)])],
    ['completion', 'all tokens of a tiny vocabulary as equally probable', completion('a', -1.1, [-1.1, -1.1])],
    // As the embedded engine and other servers answer, which give no probabilities; no recording.
    ['completion', 'text without probabilities', plain('Hello')],
    ['completion', 'no text and no probabilities', plain('', 'stop')],
    ['completion', 'probabilities of another form', { choices: [{ text: 'a', logprobs: { token_logprobs: [null], tokens: ['a'] } }] }],
    ['completion', 'an empty list of probabilities', { choices: [{ text: '', logprobs: { content: [] }, finish_reason: 'stop' }] }],
    ['embedding', 'a vector', embedding([0.6, 0, -0.8])],
    ['embedding', 'a vector in base64', embedding(base64([0.6, 0, -0.8]))],
    ['embedding', 'a vector that is not normalised', embedding([300, -2, 0.5])],
    ['embedding', 'a vector with a single value that is not 0', embedding([0, 1e-30, 0])],
    ['rerank', 'the query first', rerank(4.5, -8.1)],
    ['rerank', 'the query last', rerank(-0.4272957444190979, 2.137782573699951)],
    ['rerank', 'two tiny scores', rerank(1.2e-30, 1.3e-30)],
    ['rerank', 'a single score', rerank(0)],
  ] as const)('%s: %s', (check, _, body) => {
    expect(judge(check, body)).toEqual({ kind: 'passing' });
  });

  test('embedding: a vector of any length where the file does not say its length, or of the length of its output', () => {
    expect(judge('embedding', embedding([1, 2]), saying(ENCODER, { embeddingLength: undefined }))).toEqual({ kind: 'passing' });
    expect(judge('embedding', embedding([1, 2]), saying(THREE, { embeddingLengthOut: 2 }))).toEqual({ kind: 'passing' });
  });
});

describe('an answer that no sound model gives is nonsense', () => {
  test.each([
    ['completion', completion('\u0017', null, nine(null)), 'it gave the token "\\u0017" a probability that is not a number'],
    ['completion', completion('The', null, nine(null)), 'it gave the token "The" a probability that is not a number'],
    ['completion', completion('\u001f', -5.918893814086914, nine(-5.918893814086914)), 'all of its tokens are equally probable'],
    ['embedding', embedding([null, null, null]), '3 of the 3 values of its embedding are not numbers'],
    ['embedding', embedding(base64([0.5, Number.NaN, Number.POSITIVE_INFINITY])), '2 of the 3 values of its embedding are not numbers'],
    ['embedding', embedding([0, 0, 0]), 'all 3 values of its embedding are 0'],
    ['embedding', embedding(base64([0, 0, 0])), 'all 3 values of its embedding are 0'],
    ['embedding', embedding([1, 0]), 'its embedding has 2 values, and its file says 3'],
    ['rerank', rerank(null, null), 'it scored a document with something that is not a number'],
    ['rerank', rerank(0.3, null), 'it scored a document with something that is not a number'],
    ['rerank', rerank(0, 0), 'it gave different documents exactly the same score, 0'],
  ] as const)('%s: %j', (check, body, what) => {
    const health = judge(check, body);
    expect(health.kind).toBe('nonsense');
    expect(health.kind === 'passing' ? '' : health.message).toContain(`The model answers nonsense: with backend "vulkan", ${what}`);
  });
});

test('what is no answer of a model is judged as by a health probe', () => {
  const derive = (status: number, body: string) => deriveReadiness('completion', { status, body }, ggufModel(CAUSAL), 'cpu').kind;
  expect([derive(0, ''), derive(503, '{"error":{"message":"Loading model"}}'), derive(500, ''), derive(200, 'no JSON')]).toEqual([
    'silent',
    'loading',
    'failing',
    'failing',
  ]);
});

test('everything that a slot serves is checked', () => {
  expect(checksFor(['chat', 'completion'], 'completion')).toEqual(['completion']);
  expect(checksFor(['chat', 'completion', 'rerank'], 'rerank')).toEqual(['completion', 'rerank']);
  expect(checksFor(['embedding'], 'embedding')).toEqual(['embedding']);
  expect(checksFor([], 'embedding')).toEqual(['embedding']);
  const message = 'x';
  expect(worstOf([{ kind: 'passing' }, { kind: 'loading', message }, { kind: 'nonsense', message }]).kind).toBe('nonsense');
  expect(worstOf([{ kind: 'passing' }, { kind: 'loading', message }]).kind).toBe('loading');
  expect(worstOf([{ kind: 'passing' }])).toEqual({ kind: 'passing' });
});

describe('readiness()', () => {
  const signal = new AbortController().signal;
  const endpoint = { host: '127.0.0.1', port: 1 };
  /** Answers in this order, and keeps the requests. */
  function scripted(...answers: readonly { readonly status: number; readonly body: string }[]): ProbeIo & { readonly asked: string[] } {
    const left = [...answers];
    const asked: string[] = [];
    return {
      asked,
      async request(_endpoint, { method, path, body }) {
        asked.push(`${method} ${path}${typeof body === 'string' && body.includes('logprobs') ? ' with probabilities' : ''}`);
        return left.shift() ?? { status: 0, body: '', error: 'No answer within 30000 ms' };
      },
    };
  }
  const ok = { status: 200, body: '' };
  const none = { status: 0, body: '' };
  const loads = { status: 503, body: '' };
  const text = { status: 200, body: JSON.stringify(plain('Hi')) };

  test('costs one request more than whether the server is alive, and each later probe one request', async () => {
    const [first, later] = [scripted(ok, text), scripted(text)];
    expect(await gguf.readiness?.(endpoint, first, contextOf('primary', CAUSAL), signal)).toEqual({ kind: 'passing' });
    expect(await gguf.health(endpoint, later, contextOf('primary', CAUSAL), signal)).toEqual({ kind: 'passing' });
    expect(first.asked).toEqual(['GET /health', 'POST /v1/completions with probabilities']);
    expect(later.asked).toEqual(['POST /v1/completions']);
  });

  test.each([
    ['is silent', [none, none], 'silent'],
    ['is busy', [none, ok], 'loading'],
    ['loads', [loads, loads], 'loading'],
    ['has stopped meanwhile', [{ status: 500, body: '' }, none], 'silent'],
    ['fails', [{ status: 500, body: '' }, ok], 'failing'],
  ] as const)('a probe without an answer asks whether the server is alive, which %s', async (_what, answers, kind) => {
    const server = scripted(...answers);
    expect(await gguf.health(endpoint, server, contextOf('primary', CAUSAL), signal)).toMatchObject({ kind });
    expect(server.asked).toEqual(['POST /v1/completions', 'GET /health']);
  });

  test('waits for a server that loads or is busy', async () => {
    const loading = scripted({ status: 503, body: '{"error":{"message":"Loading model"}}' });
    expect(await gguf.readiness?.(endpoint, loading, contextOf('primary', CAUSAL), signal)).toMatchObject({ kind: 'loading' });
    expect(loading.asked).toEqual(['GET /health']);
    expect(await gguf.readiness?.(endpoint, scripted(ok), contextOf('primary', CAUSAL), signal)).toMatchObject({ kind: 'loading' });
  });

  test('of a reranker that could also generate text needs the scores, and no text', async () => {
    const slot = contextOf('primary', saying(CAUSAL, { hasClassifier: true, poolingType: 4 }));
    const answers = (path: string, body: unknown, status: number): ProbeIo => ({
      request: async (_endpoint, request) => {
        if (request.path === path) return { status, body: JSON.stringify(body) };
        return { status: 200, body: JSON.stringify({ ...rerank(1, -1), ...plain('Hi') }) };
      },
    });
    const kindOf = async (io: ProbeIo) => (await gguf.readiness?.(endpoint, io, slot, signal))?.kind;
    expect(await kindOf(answers('/v1/completions', { error: { message: 'This server does not support completions' } }, 501))).toBe(
      'passing',
    );
    expect(await kindOf(answers('/v1/completions', completion('a', null, nine(null)), 200))).toBe('nonsense');
    expect(await kindOf(answers('/v1/rerank', { error: { message: 'boom' } }, 500))).toBe('failing');
  });

  test('asks a server that refuses to tell probabilities without them', async () => {
    const refusing = scripted(ok, { status: 422, body: '' }, text);
    expect(await gguf.readiness?.(endpoint, refusing, contextOf('primary', CAUSAL), signal)).toEqual({ kind: 'passing' });
    expect(refusing.asked.at(-1)).toBe('POST /v1/completions');
  });

  test.each(['readiness', 'health'] as const)(
    '%s() passes for a vector of 4,096 values, whose text is longer than what a probe reads',
    async (how) => {
      const vector = Array.from({ length: 4096 }, (_, index) => Math.sin(index) / 64);
      const server = createServer((request, response) => {
        let body = '';
        request.on('data', (chunk: Buffer) => (body += chunk.toString()));
        request.on('end', () => response.end(JSON.stringify(embedding(body.includes('base64') ? base64(vector) : vector))));
      });
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
      try {
        const address: string | AddressInfo | null = server.address();
        const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
        const slot = contextOf('embed', saying(ENCODER, { embeddingLength: 4096 }));
        expect(await gguf[how]?.({ host: '127.0.0.1', port }, createProbeIo(), slot, signal)).toEqual({ kind: 'passing' });
      } finally {
        server.close();
      }
    },
  );
});
