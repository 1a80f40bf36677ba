import { describe, expect, test } from '@jest/globals';
import { describeFallback, findFallbackProblems } from '../../../src/schema/slot/fallback.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import type { Capability } from '../../../src/schema/slot/provider-kinds.ts';

const parse = (fallback: unknown) => parseSlot(SlotName.parse('a'), { provider: 'gguf', model: { default: 'a.gguf' }, fallback });
const specOf = (fallback: unknown) => {
  const parsed = parse(fallback);
  if (!parsed.ok || parsed.spec.fallback === undefined) throw new Error(JSON.stringify(parsed));
  return parsed.spec.fallback;
};

describe('The fallback of a slot', () => {
  test('is resolved with its defaults', () => {
    expect(specOf({ to: ['b'] })).toEqual({
      to: ['b'],
      split: [],
      stalled: true,
      upstreamFailed: true,
      loadingMs: Number.POSITIVE_INFINITY,
      queue: Number.POSITIVE_INFINITY,
      when: ['stalled', 'upstream.failed'],
    });
  });

  test('is resolved with everything', () => {
    const when = ['loading > 1.5m', 'queue > 8', 'loading > 20s'];
    expect(specOf({ to: ['b', 'c'], when, split: { canary: 5 } })).toEqual({
      to: ['b', 'c'],
      split: [['canary', 5]],
      stalled: false,
      upstreamFailed: false,
      loadingMs: 20_000,
      queue: 8,
      when,
    });
  });

  test.each<readonly [string, unknown, string]>([
    ['no slot', { when: ['stalled'] }, 'fallback'],
    ['an empty list', { to: [] }, 'fallback'],
    ['no condition', { to: ['b'], when: [] }, 'fallback.when'],
    ['a name that is none', { to: ['B b'] }, 'fallback.to.0'],
    ['a name for all slots', { to: 'b' }, 'fallback.to'],
    ['a share of nothing', { split: { b: 0 } }, 'fallback.split.b'],
    ['a share of a request', { split: { b: 0.5 } }, 'fallback.split.b'],
    ['shares of more than there is', { split: { b: 60, c: 41 } }, 'fallback.split'],
    ['a share of a slot that has no name', { split: { 'b c': 5 } }, 'fallback.split.b c'],
    ['an unknown key', { to: ['b'], then: 'c' }, 'fallback.then'],
    ...[
      'Stalled',
      'loading',
      'loading > 20',
      'loading > s',
      'loading>20s',
      'queue > 0',
      'queue > -1',
      'queue > 1.5',
      'queue > 100000',
      'failed',
      '',
    ].map((condition) => [`the condition "${condition}"`, { to: ['b'], when: [condition] }, 'fallback.when.0'] as const),
  ])('is refused with %s', (_name, fallback, path) => {
    const parsed = parse(fallback);
    expect(parsed.ok ? [] : parsed.problems.map((problem) => problem.path.join('.'))).toEqual([path]);
  });

  test('is described in a line', () => {
    expect(describeFallback(specOf({ to: ['b', 'c'], when: ['stalled', 'queue > 8'], split: { d: 5 } }))).toBe(
      'to "b", "c" when stalled, queue > 8; 5 % to "d"',
    );
    expect(describeFallback(specOf({ split: { d: 5 } }))).toBe('5 % to "d"');
  });
});

test('finds targets that can never answer', () => {
  const slot = (name: string, capabilities: readonly Capability[], fallback?: unknown) => ({
    name: SlotName.parse(name),
    capabilities,
    fallback: fallback === undefined ? undefined : specOf(fallback),
  });
  const found = findFallbackProblems([
    slot('a', ['chat', 'embedding'], { to: ['a', 'none', 'b', 'c'], split: { b: 5, gone: 5 } }),
    slot('b', ['chat']),
    slot('c', ['chat', 'embedding', 'rerank'], { to: ['a'] }),
    slot('d', ['chat'], { to: ['b'] }),
  ]);
  expect([...found]).toEqual([
    [
      'a',
      [
        'Fallback to "a" has no effect, because it is the slot itself: remove it',
        'Fallback to "none" has no effect, because no such slot exists: create it, or remove it',
        'Fallback to "b" has no effect on requests for embedding, which it does not serve',
        'Fallback to "gone" has no effect, because no such slot exists: create it, or remove it',
      ],
    ],
    ['c', ['Fallback to "a" has no effect on requests for rerank, which it does not serve']],
  ]);
});
