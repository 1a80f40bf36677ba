import { Buffer } from 'node:buffer';
import { describe, expect, test } from '@jest/globals';
import { parseCases } from '../../src/evaluation/decide/parse-cases.ts';
import { runCases, type Answer, type AskModel, type ModelRequest } from '../../src/evaluation/run-cases.ts';
import { pngOf } from '../support/comfyui/png.ts';

const NEVER = new AbortController().signal;
const cases = (...written: readonly unknown[]) => {
  const parsed = parseCases(written.map((each) => JSON.stringify(each)).join('\n'));
  if (parsed.mistake !== undefined) throw new Error(parsed.mistake);
  return parsed.cases;
};
const chat = (content: string, expectations: object, more: object = {}) => ({
  request: { messages: [{ role: 'user', content }], ...more },
  expect: expectations,
});

async function* pieces(...texts: readonly (string | Buffer)[]) {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}
const json = (body: unknown, status = 200): Answer => ({ status, contentType: 'application/json', body: pieces(JSON.stringify(body)) });
const events = (...data: readonly unknown[]): string =>
  [...data.map((each) => `data: ${JSON.stringify(each)}\n\n`), 'data: [DONE]\n\n'].join('');
const stream = (...texts: readonly (string | Buffer)[]): Answer => ({
  status: 200,
  contentType: 'text/event-stream',
  body: pieces(...texts),
});
const delta = (content: object) => ({ choices: [{ index: 0, delta: content }] });
const usage = (tokens: number) => ({ choices: [], usage: { completion_tokens: tokens } });

/** Answers in turn, and keeps what was asked. */
function answering(...answers: readonly Answer[]) {
  const asked: ModelRequest[] = [];
  const ask: AskModel = async (request) => {
    asked.push(request);
    const answer = answers[asked.length - 1];
    if (answer === undefined) throw new Error('Nothing more to answer');
    return await Promise.resolve(answer);
  };
  return { ask, asked };
}

describe('runCases()', () => {
  test('streams chats that can be repeated, unless a case says otherwise', async () => {
    const { ask, asked } = answering(
      stream(events(delta({ content: 'a' }))),
      stream(events(delta({ content: 'b' }))),
      json({ choices: [{ text: 'c' }] }),
    );
    const given = cases(
      chat('x', { contains: 'a' }),
      chat('y', { contains: 'b' }, { path: '/v1/chat/completions', temperature: 0.7, seed: 5, max_completion_tokens: 9 }),
      { request: { path: '/v1/completions', prompt: 'z', max_tokens: 3 }, expect: { contains: 'c' } },
    );
    expect(await runCases(given, ask, { signal: NEVER })).toMatchObject({ cases: 3, passed: 3, misses: [] });
    const streamed = { stream: true, stream_options: { include_usage: true } };
    expect(asked).toEqual([
      {
        path: '/v1/chat/completions',
        body: { messages: [{ role: 'user', content: 'x' }], temperature: 0, seed: 1, max_tokens: 1024, ...streamed },
      },
      {
        path: '/v1/chat/completions',
        body: { messages: [{ role: 'user', content: 'y' }], temperature: 0.7, seed: 5, max_completion_tokens: 9, ...streamed },
      },
      { path: '/v1/completions', body: { prompt: 'z', temperature: 0, seed: 1, max_tokens: 3, ...streamed } },
    ]);
  });

  test('measures the first token, reasoning included, and the tokens of each second', async () => {
    let now = 1000;
    const answer: Answer = {
      status: 200,
      contentType: 'text/event-stream; charset=utf-8',
      body: (async function* () {
        yield* pieces(': waiting\n\n', `data: ${JSON.stringify(delta({ role: 'assistant', content: null }))}\n\n`);
        now += 40;
        yield* pieces(`data: ${JSON.stringify(delta({ reasoning_content: 'Hm' }))}\n\n`);
        now += 60;
        yield* pieces(`data: ${JSON.stringify(delta({ content: 'Par' }))}\n\ndata: {"choices": [{"delta": {"con`, `tent": "is"}}]}\n\n`);
        now += 100;
        yield* pieces(events(usage(10)));
      })(),
    };
    const { ask } = answering(answer);
    const seen: unknown[] = [];
    const report = await runCases(cases(chat('x', { matches: '^Paris$' })), ask, {
      signal: NEVER,
      now: () => now,
      onResult: (result) => seen.push(result),
    });
    expect(report).toEqual({ cases: 1, passed: 1, misses: [], firstTokenP95: 40, tokensPerSecond: 50, totalMs: 200 });
    expect(seen).toEqual([{ ms: 200, firstTokenMs: 40, outputTokens: 10, miss: undefined }]);
  });

  test('joins the pieces of tool calls', async () => {
    const call = (index: number, given: object) => delta({ tool_calls: [{ index, function: given }] });
    const { ask } = answering(
      stream(
        events(
          call(0, { name: 'time', arguments: '' }),
          call(0, { arguments: '{"zone": ' }),
          call(1, { name: 'weather', arguments: '{"city"' }),
          call(1, { arguments: ': "Oslo"}' }),
          call(0, { arguments: '"UTC"}' }),
        ),
      ),
    );
    const given = cases(chat('x', { tool: { name: 'weather', arguments: { city: 'Oslo' } } }));
    expect(await runCases(given, ask, { signal: NEVER })).toMatchObject({ passed: 1 });
  });

  test('reads answers of all paths, and asks the slots "embed" and "stt" about them', async () => {
    const { ask, asked } = answering(
      json({ data: [{ embedding: [1, 2, 3] }] }),
      json({
        results: [
          { index: 0, relevance_score: 0.1 },
          { index: 2, relevance_score: 0.9 },
        ],
      }),
      json({ text: 'Hello' }),
      { status: 200, contentType: 'audio/wav', body: pieces(Buffer.from('sound')) },
      json({ text: ' good morning.' }),
      json({ data: [{ b64_json: filled() }] }),
      json({ choices: [{ message: { content: 'It is Paris' } }], timings: { predicted_n: 4 } }),
      json({ data: [{ embedding: [1, 0] }, { embedding: [1, 0.1] }] }),
    );
    const given = cases(
      { request: { path: '/v1/embeddings', input: 'a' }, expect: { dimension: 3 } },
      { request: { path: '/v1/rerank', query: 'a', documents: ['b', 'c', 'd'] }, expect: { best: 2 } },
      {
        request: { path: '/v1/audio/transcriptions', file: 'a.wav', language: 'en' },
        expect: { transcript: { reference: 'hello', at_most: 0 }, contains: 'H' },
      },
      { request: { path: '/v1/audio/speech', input: 'Good morning' }, expect: { transcript: { reference: 'Good morning', at_most: 0 } } },
      { request: { path: '/v1/images/generations', prompt: 'a fox' }, expect: { image: { width: 8, height: 8 } } },
      chat('x', { similar: { to: 'Paris', at_least: 0.9 } }),
    );
    const file = { name: 'a.wav', bytes: Buffer.from('recording') };
    const report = await runCases(given, ask, { signal: NEVER, readRecording: async (name) => await Promise.resolve({ ...file, name }) });
    expect(report.misses.map((miss) => miss.expectation)).toEqual(['shows an image of 8 x 8 pixels that is not blank: it has one colour']);
    expect(asked.slice(2, 5)).toEqual([
      { path: '/v1/audio/transcriptions', body: { language: 'en' }, file },
      { path: '/v1/audio/speech', body: { input: 'Good morning' } },
      { path: '/v1/audio/transcriptions', slot: 'stt', body: {}, file: { name: 'speech', bytes: Buffer.from('sound') } },
    ]);
    expect(asked.at(-1)).toEqual({ path: '/v1/embeddings', slot: 'embed', body: { input: ['It is Paris', 'Paris'] } });
  });

  test('reports what was wrong with an answer, and goes on', async () => {
    const broken: Answer = {
      ...stream(),
      body: (async function* () {
        yield* pieces(events(delta({ content: 'a' })));
        throw new Error('connection reset');
      })(),
    };
    const { ask } = answering(
      json({ error: { message: 'The model is too large' } }, 503),
      stream(`data: ${JSON.stringify({ error: { message: 'The server died' } })}\n\n`),
      broken,
      { status: 200, contentType: 'text/html', body: pieces('<!doctype html>') },
      json({ choices: [{ message: { content: 'Oslo' } }] }),
      json({ choices: [{ message: { content: 'Rome' } }] }),
      json({ error: { message: 'There is no slot "embed"' } }, 404),
    );
    const given = [
      ...cases(
        { ...chat('one', { contains: 'a' }), required: true },
        ...['two', 'three', 'four'].map((content) => chat(content, { contains: 'a' })),
      ),
      ...cases(chat('five '.repeat(100), { contains: 'Paris', matches: 'x' }), chat('six', { similar: { to: 'Rome', at_least: 0 } })),
    ];
    const { passed, misses } = await runCases(given, ask, { signal: NEVER });
    expect(passed).toBe(0);
    expect(misses.map(({ required, expectation, answer }) => [required, expectation, answer])).toEqual([
      [true, 'is answered: status 503: The model is too large', ''],
      [false, 'is answered: The server died', ''],
      [false, 'is answered: the answer was cut: connection reset', ''],
      [false, 'is answered: the answer is not JSON', ''],
      [false, 'contains "Paris"; matches "x"', 'Oslo'],
      [false, 'is answered: the slot "embed" could not compare the answer: status 404: There is no slot "embed"', 'Rome'],
    ]);
    expect(misses[4]?.question).toHaveLength(301);
  });

  test('an answer that has nothing to compare is not compared', async () => {
    const { ask, asked } = answering(json({ choices: [{ message: { content: ' ' } }] }));
    const report = await runCases(cases(chat('x', { similar: { to: 'Paris', at_least: 0.5 } })), ask, { signal: NEVER });
    expect([report.passed, asked.length]).toEqual([0, 1]);
  });

  test('a model that cannot be asked ends it', async () => {
    await expect(runCases(cases(chat('x', { contains: 'a' })), answering().ask, { signal: NEVER })).rejects.toThrow(
      'Nothing more to answer',
    );
  });

  test('stops in the middle of an answer, and asks no more', async () => {
    const stop = new AbortController();
    const body = async function* () {
      yield* pieces('data: {}\n\n');
      stop.abort(new Error('stopped'));
      throw new Error('socket closed');
    };
    const { ask, asked } = answering({ ...stream(), body: body() }, stream());
    const given = cases(chat('x', { contains: 'a' }), chat('y', { contains: 'a' }));
    await expect(runCases(given, ask, { signal: stop.signal })).rejects.toThrow('stopped');
    expect(asked).toHaveLength(1);
  });
});

const filled = (): string => pngOf(8, 8, 3).toString('base64');
