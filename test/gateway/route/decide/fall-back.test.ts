import { describe, expect, test } from '@jest/globals';
import {
  fallBack,
  isUpstreamFailure,
  MOST_MOVES,
  splitOff,
  causeOf,
  type FallbackFacts,
  type Move,
  type FallbackCause,
} from '../../../../src/gateway/route/decide/fall-back.ts';
import { boardView, DISABLED, PARK, slotName, type SlotSketch } from '../../support/board-fixture.ts';

const FULL: FallbackFacts = { load: () => 0, hasRoom: () => true, isFull: () => false, isAble: () => true };
const STALLED: FallbackCause = { kind: 'stalled' };
const FAILED: FallbackCause = { kind: 'upstream.failed' };
const QUEUE: FallbackCause = { kind: 'queue' };
const waited = (waitedMs: number): FallbackCause => ({ kind: 'loading', waitedMs });
const targets = (...ports: readonly number[]) => ports.map((port) => ({ workload: `w${port}`, port }));

const open = (name: string, more: Partial<SlotSketch> = {}): SlotSketch => ({ name, targets: targets(1), ...more });
const parked = (name: string, more: Partial<SlotSketch> = {}): SlotSketch => ({ name, admission: PARK, ...more });
const refused = (name: string, more: Partial<SlotSketch> = {}): SlotSketch => ({ name, admission: DISABLED, ...more });
const to = (...names: readonly string[]) => ({ fallback: { to: [...names] } });
const when = (...conditions: readonly string[]) => ({ fallback: { to: ['b'], when: [...conditions] } });
const move = (from: string, target: string, reason: Move['reason'] = 'stalled'): Move => ({
  from: slotName(from),
  to: slotName(target),
  reason,
});

interface Case {
  readonly slots: readonly SlotSketch[];
  /** Default: a stalled slot. */
  readonly cause?: FallbackCause;
  readonly moves?: readonly Move[];
  readonly facts?: Partial<FallbackFacts>;
}

/** The request is at slot `a`, or where its last move has led. */
function targetOf({ slots, cause = STALLED, moves = [], facts = {} }: Case): string | undefined {
  const place = { slot: moves.at(-1)?.to ?? slotName('a'), moves };
  return fallBack(cause, place, boardView(1, slots), { ...FULL, ...facts })?.name;
}

describe('fallBack()', () => {
  test.each<readonly [string, Case, string | undefined]>([
    ['without a fallback, the request stays', { slots: [refused('a'), open('b')] }, undefined],
    [
      'the first target that is open gets the request',
      { slots: [refused('a', to('b', 'c', 'd')), parked('b'), open('c'), open('d')] },
      'c',
    ],
    [
      'if none is open, the first that it may wait for',
      { slots: [refused('a', to('b', 'c', 'd')), refused('b'), parked('c'), parked('d')] },
      'c',
    ],
    [
      'a target whose queue is full is none',
      { slots: [refused('a', to('b', 'c')), parked('b'), parked('c')], facts: { hasRoom: (name) => name !== 'b' } },
      'c',
    ],
    ['a full queue of an open target does not matter', { slots: [refused('a', to('b')), open('b')], facts: { hasRoom: () => false } }, 'b'],
    [
      'an open target that is full comes after those that are not',
      { slots: [refused('a', to('b', 'c')), open('b'), open('c')], facts: { isFull: ({ name }) => name === 'b' } },
      'c',
    ],
    ['one that is full is waited for', { slots: [refused('a', to('b')), open('b')], facts: { isFull: () => true } }, 'b'],
    [
      'one that is full, with a full queue, is none',
      { slots: [refused('a', to('b')), open('b')], facts: { isFull: () => true, hasRoom: () => false } },
      undefined,
    ],
    ['if all refuse, the request stays', { slots: [refused('a', to('b')), refused('b')] }, undefined],
    [
      'a target that cannot do it is left out',
      { slots: [refused('a', to('b', 'c')), open('b'), open('c')], facts: { isAble: ({ name }) => name !== 'b' } },
      'c',
    ],
    ['targets that do not exist are left out', { slots: [refused('a', to('none', 'b')), open('b')] }, 'b'],
    [
      'the slot itself is left out',
      { slots: [parked('a', { fallback: { to: ['a'], when: ['loading > 0s'] } })], cause: waited(5) },
      undefined,
    ],

    ['by default a stalled slot is left', { slots: [refused('a', to('b')), open('b')] }, 'b'],
    ['by default a failed upstream is left', { slots: [open('a', to('b')), open('b')], cause: FAILED }, 'b'],
    ['by default a loading slot is not left', { slots: [parked('a', to('b')), open('b')], cause: waited(1e9) }, undefined],
    [
      'by default a long queue is not left',
      { slots: [open('a', to('b')), open('b')], cause: QUEUE, facts: { load: () => 1e9 } },
      undefined,
    ],
    [
      'a stalled slot is not left where only others are named',
      { slots: [refused('a', when('upstream.failed', 'queue > 1', 'loading > 0s')), open('b')] },
      undefined,
    ],
    [
      'a failed upstream is not left where only others are named',
      { slots: [open('a', when('stalled')), open('b')], cause: FAILED },
      undefined,
    ],
    [
      'a loading slot is left when the time has passed',
      { slots: [parked('a', when('loading > 20s')), open('b')], cause: waited(20_000) },
      'b',
    ],
    ['and not before', { slots: [parked('a', when('loading > 20s')), open('b')], cause: waited(19_999) }, undefined],
    ['at once with 0', { slots: [parked('a', when('loading > 0s')), open('b')], cause: waited(0) }, 'b'],
    [
      'the shortest of several times counts',
      { slots: [parked('a', when('loading > 20s', 'loading > 100ms')), open('b')], cause: waited(100) },
      'b',
    ],

    [
      'a queue is left when this request would be one too many',
      { slots: [open('a', when('queue > 2')), open('b')], cause: QUEUE, facts: { load: (name) => (name === 'a' ? 2 : 0) } },
      'b',
    ],
    ['and not before', { slots: [open('a', when('queue > 2')), open('b')], cause: QUEUE, facts: { load: () => 1 } }, undefined],
    [
      'each server has a queue',
      {
        slots: [open('a', { ...when('queue > 2'), targets: targets(1, 2) }), open('b')],
        cause: QUEUE,
        facts: { load: (name) => (name === 'a' ? 3 : 0) },
      },
      undefined,
    ],
    [
      'a target with as long a queue is none',
      {
        slots: [open('a', { fallback: { to: ['b', 'c'], when: ['queue > 2'] } }), open('b'), open('c')],
        cause: QUEUE,
        facts: { load: (name) => (name === 'c' ? 1 : 2) },
      },
      'c',
    ],
    [
      'if all queues are long, the request stays',
      { slots: [open('a', when('queue > 2')), open('b')], cause: QUEUE, facts: { load: () => 2 } },
      undefined,
    ],
    [
      'a queue does not matter to a request of a stalled slot',
      { slots: [refused('a', to('b')), open('b')], facts: { load: () => 1e9 } },
      'b',
    ],

    [
      'a target’s own fallback is followed',
      { slots: [refused('a', to('b')), refused('b', to('c')), open('c')], moves: [move('a', 'b')] },
      'c',
    ],
    [
      'where a target declares none, the chain goes on',
      { slots: [refused('a', to('b', 'c')), refused('b'), open('c')], moves: [move('a', 'b')] },
      'c',
    ],
    [
      'a target’s queue is not measured by the slot that was left',
      { slots: [refused('a', when('queue > 1')), open('b'), open('c')], moves: [move('a', 'b')], cause: QUEUE, facts: { load: () => 9 } },
      undefined,
    ],
    [
      'a target’s load is not either',
      {
        slots: [parked('a', { fallback: { to: ['b', 'c'], when: ['loading > 0s'] } }), parked('b'), open('c')],
        moves: [move('a', 'b')],
        cause: waited(9),
      },
      undefined,
    ],
    [
      'the target’s own fallback comes first',
      { slots: [refused('a', to('b', 'c')), refused('b', to('d')), open('c'), open('d')], moves: [move('a', 'b')] },
      'd',
    ],
    [
      'a slot that was left is not visited again',
      { slots: [open('a', to('b')), refused('b', to('a')), open('c')], moves: [move('a', 'b')] },
      undefined,
    ],
    [
      'a request that was split off may go to its slot',
      { slots: [open('a', { fallback: { split: { b: 5 } } }), refused('b')], moves: [move('a', 'b', 'split')] },
      'a',
    ],
    [
      'and from there to its targets',
      {
        slots: [refused('a', { fallback: { split: { b: 5 }, to: ['b', 'c'] } }), refused('b'), open('c')],
        moves: [move('a', 'b', 'split'), move('b', 'a')],
      },
      'c',
    ],
    [
      'after the most moves, it stays',
      {
        slots: ['a', 'b', 'c', 'd', 'e', 'f'].map((name, index) => refused(name, to('abcdefg'.charAt(index + 1)))).concat(open('g')),
        moves: [move('a', 'b'), move('b', 'c'), move('c', 'd'), move('d', 'e')],
      },
      undefined,
    ],
  ])('%s', (_name, given, expected) => {
    expect(targetOf(given)).toBe(expected);
  });

  test('ends after the most moves, however the slots name each other', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    const slots = names.map((name) => open(name, to(...names)));
    const moves: Move[] = [];
    for (;;) {
      const target = targetOf({ slots, moves });
      if (target === undefined) break;
      moves.push(move(moves.at(-1)?.to ?? 'a', target));
    }
    expect(moves).toHaveLength(MOST_MOVES);
    expect(new Set(['a', ...moves.map((each) => each.to)]).size).toBe(MOST_MOVES + 1);
  });
});

describe('splitOff()', () => {
  const split = { fallback: { split: { b: 5, c: 20 } } };
  const share = (slots: readonly SlotSketch[], facts: Partial<FallbackFacts> = {}) => {
    const board = boardView(1, slots);
    const [asked] = board.slots.values();
    if (asked === undefined) throw new Error('No slot');
    const counts = new Map<string | undefined, number>();
    for (let index = 0; index < 20_000; index += 1) {
      const name = splitOff(asked, `key ${index}`, board, { ...FULL, ...facts })?.name;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return (name: string | undefined) => (counts.get(name) ?? 0) / 200;
  };

  test('gives each slot its share, and equal keys the same slot', () => {
    const slots = [open('a', split), open('b'), parked('c')];
    const percent = share(slots);
    expect(Math.abs(percent('b') - 5)).toBeLessThan(1);
    expect(Math.abs(percent('c') - 20)).toBeLessThan(1);
    expect(Math.abs(percent(undefined) - 75)).toBeLessThan(1);
    expect(share(slots)('b')).toBe(percent('b'));
  });

  test('keeps the share of a slot that cannot answer', () => {
    expect(share([open('a', split), refused('b'), parked('c')], { hasRoom: () => false })(undefined)).toBe(100);
    expect(share([open('a', split)])(undefined)).toBe(100);
    expect(share([open('a', split), open('b'), open('c')], { isAble: () => false })(undefined)).toBe(100);
    expect(share([open('a', { fallback: { split: { a: 100 } } })])(undefined)).toBe(100);
  });

  test('gives everything away at 100 per cent', () => {
    expect(share([open('a', { fallback: { split: { b: 100 } } }), open('b')])('b')).toBe(100);
  });
});

test.each([
  ['slot.disabled', DISABLED, 'stalled'],
  ['slot.disabled', PARK, undefined],
  ['slot.loading', PARK, undefined],
  ['slot.loading', { kind: 'refuse', code: 'slot.loading', message: '' }, 'stalled'],
  ['slot.stalled', { kind: 'refuse', code: 'slot.stalled', message: '' }, 'stalled'],
  ['slot.insufficient_memory', { kind: 'refuse', code: 'slot.insufficient_memory', message: '' }, 'stalled'],
  ['slot.queue_full', PARK, undefined],
  ['upstream.failed', PARK, 'upstream.failed'],
  ['upstream.timeout', PARK, 'upstream.failed'],
  ['request.invalid', DISABLED, undefined],
] as const)('the error "%s" of a slot with the admission %j is the cause "%s"', (code, admission, kind) => {
  expect(causeOf(code, boardView(1, [{ name: 'a', admission }]).slots.get(slotName('a')))?.kind).toBe(kind);
});

test('only errors of the server itself, and its limits, let a request fall back', () => {
  expect([400, 401, 404, 422, 429, 499, 500, 501, 502, 503, 529].filter(isUpstreamFailure)).toEqual([429, 500, 501, 502, 503, 529]);
});
