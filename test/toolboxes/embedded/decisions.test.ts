import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseFlags } from '../../../toolboxes/embedded/decide/parse-flags.ts';
import { readBody, readChat, readCompletion, readEmbedding, readRerank } from '../../../toolboxes/embedded/decide/read-request.ts';
import { createStopText } from '../../../toolboxes/embedded/decide/stop-text.ts';
import { createWorkQueue } from '../../../toolboxes/embedded/work-queue.ts';

describe('parseFlags()', () => {
  test('reads llama-server’s flags, long or short, and passes over those without meaning here', () => {
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

describe('createStopText()', () => {
  test('never sends a stop text, nor anything after it, however the text is cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 4 })),
        fc.constantFrom('aba', 'bb', 'b'),
        (pieces, stop) => {
          const whole = pieces.join('');
          const stopText = createStopText([stop]);
          let sent = '';
          let stopped = false;
          for (const piece of pieces) {
            if (stopped) break;
            const next = stopText.push(piece);
            sent += next.text;
            stopped = next.stopped;
          }
          if (!stopped) sent += stopText.end();
          const at = whole.indexOf(stop);
          expect(sent).toBe(at === -1 ? whole : whole.slice(0, at));
        },
      ),
    );
  });
});

describe('the readers of bodies', () => {
  test.each([
    [readChat, {}, 400],
    [readChat, { messages: [{}] }, 400],
    [readChat, { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 501],
    [readChat, { messages: [{ role: 'user', content: 'x' }], tools: [{}] }, 501],
    [readChat, { messages: [{ role: 'user', content: 'x' }], n: 2 }, 501],
    [readChat, { messages: [{ role: 'user', content: 'x' }], temperature: 'hot' }, 400],
    [readChat, { messages: [{ role: 'user', content: 'x' }], stop: 5 }, 400],
    [readCompletion, { prompt: 5 }, 400],
    [readCompletion, { prompt: ['a', 'b'] }, 501],
    [readEmbedding, {}, 400],
    [readEmbedding, { input: [{}] }, 400],
    [readEmbedding, { input: 'x', encoding_format: 'hex' }, 400],
    [readRerank, { query: 'x', documents: [{}] }, 400],
    [readRerank, { query: 'x', documents: ['y'], top_n: 0 }, 400],
  ] as const)('%p refuses %j with %s', (reader, body, status) => {
    expect(reader(body)).toMatchObject({ ok: false, refusal: { status } });
  });

  test('text parts of a message are put together, and nulls mean unset', () => {
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
    expect(readChat(body)).toMatchObject({ ok: true, value: { messages: [{ role: 'user', content: 'ab' }], sampling: { stop: [] } } });
  });

  test('answer any JSON without throwing', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const body = readBody(text);
        if (!body.ok) return;
        for (const reader of [readChat, readCompletion, readEmbedding, readRerank]) expect(typeof reader(body.value).ok).toBe('boolean');
      }),
    );
  });
});

describe('createWorkQueue()', () => {
  test('runs as many as there are seats, in the order they came, and refuses what does not fit', async () => {
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

  test('gives a seat back when a job fails, and takes one that waits out when its client leaves', async () => {
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
