/** Translations that are wrong fail their own request and nothing else. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Steps, Translate, TranslationEnd } from '../../src/providers/translation.ts';
import { ask, begin as beginAnswer, onLeave, wait, write } from '../../src/providers/translation-steps.ts';
import { errorOf } from './support/client.ts';
import { json, sayOnce } from './support/toy-translations.ts';
import { failedWith, NOTHING_LEFT, says, startTranslation, type TranslationFixture } from './support/translation-fixture.ts';

const MIB = 1024 * 1024;
let world: TranslationFixture | undefined;

afterEach(async () => {
  expect(await world?.close()).toEqual(NOTHING_LEFT);
});

async function start(...options: Parameters<typeof startTranslation>): Promise<TranslationFixture> {
  world = await startTranslation(...options);
  return world;
}

/** A generator of steps from a function without any. */
const end = (run: () => TranslationEnd): Translate =>
  function* once(): Steps<TranslationEnd> {
    yield* wait(1);
    return run();
  };

describe('a translation that is wrong', () => {
  const throwing = (): never => {
    throw new TypeError('It exploded');
  };
  const BROKEN: Readonly<Record<string, Translate>> = {
    'throws before its first step': throwing,
    'throws between two steps': end(throwing),
    'asks for a path with a line end': function* run() {
      return json((yield* ask({ method: 'GET', path: '/a\r\nx: y' })).status);
    },
    'sends a header with a line end': function* run() {
      return json((yield* ask({ method: 'GET', path: '/', headers: { a: 'b\r\nc: d' } })).status);
    },
    'sends a content-length of its own': function* run() {
      return json((yield* ask({ method: 'POST', path: '/', headers: { 'Content-Length': '5' }, body: 'a' })).status);
    },
    'answers with an impossible status': end(() => json({}, 42)),
    'answers with a header that is malformed': end(() => ({ kind: 'answer', status: 200, contentType: 'a\nb', body: '' })),
    'ends without an answer': end(() => ({ kind: 'written' })),
    'writes before it begins': function* run() {
      yield* write('a');
      return { kind: 'written' };
    },
    'reads an answer that it has not opened': function* run() {
      yield { kind: 'next' };
      return { kind: 'written' };
    },
  };
  test.each(Object.keys(BROKEN))('because it %s fails its own request, and the log says why', async (what) => {
    const { gateway, speak } = await start(BROKEN[what] ?? throwing, says);
    const reply = await speak();
    expect(failedWith(reply)).toEqual([502, 'upstream.failed', 'gateway']);
    expect(errorOf(reply.text).message).toContain(String(reply.headers['x-request-id']));
    expect(gateway.faults).toEqual([expect.any(Error)]);
  });

  test('because it never ends does not keep the others from being served', async () => {
    const spinning: Translate = function* run({ body }) {
      if (body.kind === 'json' && !body.text.includes('spin')) return json({ fine: true });
      for (;;) yield* onLeave([]);
    };
    const { speak } = await start(spinning, says, { SVC_FIRST_BYTE_TIMEOUT: '300ms' });
    const stuck = speak({ voice: 'spin' });
    for (let count = 0; count < 5; count += 1) expect((await speak()).status).toBe(200);
    expect(failedWith(await stuck)).toEqual([504, 'upstream.timeout', 'gateway']);
  });

  test('because it fails in the middle of a stream ends the stream with an error', async () => {
    const half: Translate = function* run() {
      yield* beginAnswer({ status: 200, contentType: 'text/event-stream' });
      yield* write('data: {"part":1}\n\n');
      return { kind: 'failed', message: 'The engine has stopped' };
    };
    const { speak } = await start(half, says);
    const reply = await speak();
    expect([reply.status, reply.headers['x-accel-buffering']]).toEqual([200, 'no']);
    expect(reply.text).toMatch(/^data: \{"part":1\}\n\ndata: \{"error":\{"message":"The engine has stopped".*"code":"upstream\.failed"/);
  });

  test('because it asks for a larger answer than it may gets none', async () => {
    const { gateway, speak } = await start(sayOnce, (_request, res) => void res.end(Buffer.alloc(2 * MIB)));
    const reply = await speak();
    expect([failedWith(reply), errorOf(reply.text).message]).toEqual([
      [502, 'upstream.failed', 'gateway'],
      'The answer of the upstream to "/say" has more than 1048576 bytes',
    ]);
    expect(gateway.faults).toEqual([]);
  });
});
