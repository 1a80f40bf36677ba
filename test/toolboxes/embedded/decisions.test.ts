import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseFlags } from '../../../toolboxes/embedded/decide/parse-flags.ts';
import { parseBody, parseChat, parseCompletion, parseEmbedding, parseRerank } from '../../../toolboxes/embedded/decide/parse-request.ts';
import { createStopStrings } from '../../../toolboxes/embedded/decide/stop-strings.ts';
import { createWorkQueue } from '../../../toolboxes/embedded/work-queue.ts';

describe('parseFlags()', () => {
  test('parses long and short flags of llama-server and ignores those that have no effect here', () => {
    const argv = '-m /m.gguf --host 127.0.0.1 --port 1234 -a a,b -c 512 -np 2 -t 3 -ngl all --no-ui --offline --mmproj x.gguf'.split(' ');
    expect(parseFlags(argv)).toEqual({
      ok: true,
      flags: {
        model: '/m.gguf',
        host: '127.0.0.1',
        port: 1234,
        alias: 'a',
        aliases: ['b'],
        context: 512,
        parallel: 2,
        threads: 3,
        mode: 'generate',
        pooling: undefined,
        modulesDir: undefined,
      },
    });
  });

  test.each([
    [['--embeddings', '--pooling', 'mean'], 'embed'],
    [['--rerank'], 'rerank'],
    [['--pooling', 'rank'], 'rerank'],
  ] as const)('%j is mode %s', (more, mode) => {
    expect(parseFlags(['-m', 'x', ...more])).toMatchObject({ flags: { mode } });
  });

  test.each([[['--port', '1']], [['-m', 'x', '--port', 'abc']], [['-m', 'x', '--lora', 'y']], [['-m']]])(
    'refuses %j with a message',
    (argv) => {
      expect(parseFlags(argv)).toMatchObject({ ok: false, message: expect.stringMatching(/.{10,}/) });
    },
  );
});

describe('createStopStrings()', () => {
  test('never sends a stop string or anything after it, however the text is split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 4 })),
        fc.constantFrom('aba', 'bb', 'b'),
        (pieces, stop) => {
          const whole = pieces.join('');
          const stopStrings = createStopStrings([stop]);
          let sent = '';
          let stopped = false;
          for (const piece of pieces) {
            if (stopped) break;
            const next = stopStrings.push(piece);
            sent += next.text;
            stopped = next.stopped;
          }
          if (!stopped) sent += stopStrings.end();
          const at = whole.indexOf(stop);
          expect(sent).toBe(at === -1 ? whole : whole.slice(0, at));
        },
      ),
    );
  });
});

describe('The parsers of request bodies', () => {
  test.each([
    [parseChat, {}, 400],
    [parseChat, { messages: [{}] }, 400],
    [parseChat, { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 422],
    [parseChat, { messages: [{ role: 'user', content: 'x' }], tools: [{}] }, 422],
    [parseChat, { messages: [{ role: 'user', content: 'x' }], n: 2 }, 422],
    [parseChat, { messages: [{ role: 'user', content: 'x' }], temperature: 'hot' }, 400],
    [parseChat, { messages: [{ role: 'user', content: 'x' }], stop: 5 }, 400],
    [parseCompletion, { prompt: 5 }, 400],
    [parseCompletion, { prompt: ['a', 'b'] }, 422],
    [parseEmbedding, {}, 400],
    [parseEmbedding, { input: [{}] }, 400],
    [parseEmbedding, { input: 'x', encoding_format: 'hex' }, 400],
    [parseRerank, { query: 'x', documents: [{}] }, 400],
    [parseRerank, { query: 'x', documents: ['y'], top_n: 0 }, 400],
  ] as const)('%p refuses %j with status %s', (parseRequest, body, status) => {
    expect(parseRequest(body)).toMatchObject({ ok: false, refusal: { status } });
  });

  test('join the text parts of a message, and treat null as unset', () => {
    const body = {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
      seed: null,
      stop: null,
      max_tokens: null,
    };
    expect(parseChat(body)).toMatchObject({ ok: true, value: { messages: [{ role: 'user', content: 'ab' }], sampling: { stop: [] } } });
  });

  test('accept any JSON without throwing', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const body = parseBody(text);
        if (!body.ok) return;
        for (const parseRequest of [parseChat, parseCompletion, parseEmbedding, parseRerank])
          expect(typeof parseRequest(body.value).ok).toBe('boolean');
      }),
    );
  });
});

describe('createWorkQueue()', () => {
  test('runs one job per worker, in the order of arrival, and refuses too many', async () => {
    const queue = createWorkQueue(['one'], 1);
    const signal = new AbortController().signal;
    const order: number[] = [];
    const gate = Promise.withResolvers<void>();
    const first = queue.run(async () => gate.promise.then(() => order.push(1)), signal);
    const second = queue.run(async () => order.push(2), signal);
    expect(await queue.run(async () => order.push(3), signal)).toBe('full');
    gate.resolve();
    await Promise.all([first, second]);
    expect(order).toEqual([1, 2]);
  });

  test('frees the worker when a job fails, and removes a waiting job when its client disconnects', async () => {
    const queue = createWorkQueue(['one'], 5);
    const signal = new AbortController().signal;
    await expect(queue.run(async () => Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
    const gate = Promise.withResolvers<void>();
    const running = queue.run(async () => gate.promise, signal);
    const abort = new AbortController();
    const waiting = queue.run(async () => 'ran', abort.signal);
    abort.abort();
    expect(await waiting).toBe('aborted');
    gate.resolve();
    await running;
    expect(await queue.run(async () => 'ran', signal)).toBe('ran');
  });
});
