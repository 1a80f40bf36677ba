import { describe, expect, test } from '@jest/globals';
import { explainSlow, type EndedRequest, type SlowFacts } from '../../../../src/api/manage/decide/explain-slow.ts';
import type { FinishedRequest } from '../../../../src/gateway/exchange-deps.ts';
import { slotName } from '../../../gateway/support/board-fixture.ts';

const PRIMARY = slotName('primary');
const END = 1_000_000;

/** Seconds of its end, by a clock on which `END` is 1000. */
const ended = (facts: Partial<FinishedRequest>, at = END / 1000): EndedRequest => ({
  at: at * 1000,
  finished: { slot: PRIMARY, route: '/v1/chat/completions', status: 200, seconds: 10, ...facts },
});
const moved = (seconds: number, to: SlowFacts['entries'][number]['to'], cause = ''): SlowFacts['entries'][number] => ({
  at: seconds * 1000,
  ...(to === undefined ? {} : { to }),
  cause,
});
const TOKENS = { input: 100, output: 200 };
const FALLEN = [{ from: slotName('big'), to: PRIMARY, reason: 'upstream.failed' as const }];
const SPLIT = [{ from: slotName('big'), to: PRIMARY, reason: 'split' as const }];

const TABLE: readonly (readonly [string, Partial<FinishedRequest>, string | undefined, Partial<SlowFacts>?])[] = [
  ['a quick request has no cause', { seconds: 0.9, ttftSeconds: 0.5 }, undefined],
  ['a long answer at a readable speed has none', { seconds: 20, ttftSeconds: 0.5, tokens: { input: 9, output: 800 } }, undefined],
  ['1: the request was with another slot, and waited', { parkedSeconds: 8, ttftSeconds: 8.1, moves: FALLEN }, 'fallback'],
  ['1: the other slot failed late', { ttftSeconds: 9, moves: FALLEN }, 'fallback'],
  ['1: a request that was split off is with its first slot', { ttftSeconds: 9, moves: SPLIT }, 'server'],
  [
    '2: the load began late',
    { parkedSeconds: 8, ttftSeconds: 8.1 },
    'memory',
    { entries: [moved(990, 'offline'), moved(997, 'starting')] },
  ],
  ['2: memory is named', { parkedSeconds: 8 }, 'memory', { entries: [moved(991, undefined, 'InsufficientMemory: 9 GiB')] }],
  ['3: the load began at once', { parkedSeconds: 8, ttftSeconds: 8.1 }, 'load', { entries: [moved(990.1, 'starting')] }],
  [
    '3: the slot was loading already',
    { parkedSeconds: 8 },
    'load',
    { entries: [moved(900, 'offline', 'MemoryNotFree: x'), moved(950, 'starting'), moved(997, 'warming')] },
  ],
  ['3: nothing is known of the slot', { status: 503, parkedSeconds: 10 }, 'load'],
  [
    '4: the slot answered all the time, and was full',
    { parkedSeconds: 8, ttftSeconds: 8.1 },
    'queue',
    { entries: [moved(900, 'ready'), moved(991, 'serving')] },
  ],
  ['4: not if the slot was replaced meanwhile', { parkedSeconds: 8 }, 'load', { entries: [moved(900, 'ready'), moved(991, 'warming')] }],
  ['4: earlier requests ended just before', { ttftSeconds: 9 }, 'queue', { others: [ended({ seconds: 20 }, 998)] }],
  ['4: not if they ended long before', { ttftSeconds: 9 }, 'server', { others: [ended({ seconds: 20 }, 992)] }],
  ['4: not if they came later', { ttftSeconds: 9 }, 'server', { others: [ended({ seconds: 2 }, 998)] }],
  ['4: not at another slot', { ttftSeconds: 9 }, 'server', { others: [ended({ seconds: 20, slot: slotName('other') }, 998)] }],
  ['5: the prompt is long', { ttftSeconds: 9, tokens: { input: 9000, output: 50 } }, 'prompt'],
  ['5: without a stream', { tokens: { input: 9000, output: 50 } }, 'prompt'],
  ['6: the prompt was in the cache', { ttftSeconds: 9, tokens: Object.assign({ input: 9000, output: 50 }, { cached: 8900 }) }, 'server'],
  ['7: the client read slowly', { ttftSeconds: 0.1, blockedSeconds: 6, tokens: TOKENS }, 'client'],
  ['8: the server wrote slowly', { ttftSeconds: 0.1, tokens: { input: 9, output: 20 } }, 'output'],
  ['8: the answer took minutes', { seconds: 90, ttftSeconds: 0.1, tokens: { input: 9, output: 9000 } }, 'output'],
  ['8: without a stream and without tokens', {}, 'output'],
];

describe('why a request was slow', () => {
  test.each(TABLE)('%s', (_name, request, cause, facts = {}) => {
    expect(explainSlow(ended(request), { entries: [], others: [], ...facts })?.cause).toBe(cause);
  });

  test('is said with the time that it took', () => {
    const nothing = { entries: [], others: [] };
    expect(explainSlow(ended({ ttftSeconds: 0.1, tokens: { input: 9, output: 20 } }), nothing)?.message).toBe(
      'The server wrote 20 tokens in 9.9 s, 2.0 per second',
    );
    expect(explainSlow(ended({ ttftSeconds: 9, moves: FALLEN }), nothing)?.message).toBe(
      'It was with "big" (upstream.failed) first, and 9.0 s passed before an answer',
    );
    const pulling = { ...nothing, entries: [moved(991, 'pulling')] };
    expect(explainSlow(ended({ parkedSeconds: 9.5 }), pulling)?.message).toBe('It waited 9.5 s until its slot was loaded, with a download');
  });
});
