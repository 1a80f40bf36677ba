/** Pure functions of the dashboard. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EMPTY_ANSWER, extendAnswer } from '../../dashboard/src/decide/chat.ts';
import { formatAge, formatBytes, formatSeconds } from '../../dashboard/src/decide/format.ts';
import { formatSize } from '../../src/schema/words/quantities.ts';
import { retryDelayMs } from '../../dashboard/src/decide/pace.ts';
import { lineOfKey } from '../../dashboard/src/decide/slot-document.ts';
import { appendText, matchesOf, NO_LINES, readEvents, SSE_BEGIN, type ServerEvent } from '../../dashboard/src/decide/stream-text.ts';
import { ratesBetween, sparklinePoints } from '../../dashboard/src/decide/token-rates.ts';
import { applyPatch, diffTables, listChanges } from '../../dashboard/src/decide/patch.ts';
import { hashOf, readPlace } from '../../dashboard/src/decide/route.ts';
import { safeLink } from '../../dashboard/src/decide/untrusted.ts';
import {
  ableFirst,
  afterEntry,
  matchesSearch,
  movedBy,
  needsAttention,
  orderSlots,
  summarize,
} from '../../dashboard/src/decide/slot-facts.ts';
import type { Condition, Slot } from '../../dashboard/src/types.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { mergePatch } from '../../src/schema/slot/slot-editor.ts';

describe('events of a stream', () => {
  const STREAM =
    'retry: 1000\nid: 7\n: connected\n\nid: 8\nevent: timeline\ndata: {"a":1}\n\n: heartbeat\n\nid: 9\r\nevent: gap\r\ndata: one\r\ndata: two\r\n\r\ndata: last\n\n';
  const EXPECTED: readonly ServerEvent[] = [
    { event: 'timeline', data: '{"a":1}', id: '8' },
    { event: 'gap', data: 'one\ntwo', id: '9' },
    { event: 'message', data: 'last', id: '9' },
  ];

  test('are independent of how the stream is split', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 40 }), (sizes) => {
        let rest = SSE_BEGIN;
        let position = 0;
        const events: ServerEvent[] = [];
        for (const size of [...sizes, STREAM.length]) {
          const read = readEvents(rest, STREAM.slice(position, position + size));
          position += size;
          rest = read.rest;
          events.push(...read.events);
        }
        expect(events).toEqual(EXPECTED);
        expect(rest).toEqual({ text: '', id: '9' });
      }),
    );
  });

  test('provide an id to resume from before the first event', () => {
    expect(readEvents(SSE_BEGIN, 'id: 41\n: connected\n\n')).toEqual({ events: [], rest: { text: '', id: '41' } });
  });
});

describe('an edit as a patch', () => {
  const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  const { table } = fc.letrec((tie) => ({
    table: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof({ maxDepth: 3 }, value, tie('table')), { noNullPrototype: true }),
  }));
  const tables = table.filter((made): made is Record<string, unknown> => typeof made === 'object' && made !== null);

  test('turns one document into the other, as the service applies it', () => {
    fc.assert(
      fc.property(tables, tables, (from, to) => {
        // A merge patch cannot create an empty table, and slots do not need one.
        const patch = diffTables(from, to);
        expect(applyPatch(from, patch)).toEqual(mergePatch(from, patch));
        expect(listChanges(applyPatch(from, patch), to)).toEqual([]);
      }),
    );
  });

  test('is empty for equal documents, and removes with null', () => {
    expect(diffTables({ a: 1, b: { c: [1] } }, { a: 1, b: { c: [1] } })).toEqual({});
    expect(diffTables({ a: 1, b: { c: 1, d: 2 } }, { b: { d: 3 } })).toEqual({ a: null, b: { c: null, d: 3 } });
    expect(listChanges({ a: 1 }, { b: { c: 'x' } })).toEqual([
      { key: 'a', before: '1', after: undefined },
      { key: 'b.c', before: undefined, after: '"x"' },
    ]);
  });
});

test.each([
  ['model.context', 'enabled = true\n\n[model]\ndefault = "x"\ncontext = 3\n', 5],
  ['model.context', '[model]\ndefault = "x"\n', 1],
  ['model.context', 'model.context = 1\n', 1],
  ['env.A', '# text\n[env]\n"A" = "1"\n', 3],
  ['resources.memory', 'a = 1\n[resources] # of it\nmemory="1"', 3],
  ['nothing', 'a = 1\nb = 2\n', 1],
  ['', '', 1],
])('the key %j of %j is in line %d', (key, text, line) => {
  expect(lineOfKey(text, key)).toBe(line);
});

test('URLs of pages round-trip, and unknown ones lead to the slots', () => {
  for (const place of [
    { page: 'models' },
    { page: 'models', slot: 'a/b' },
    { page: 'slots', slot: 'primary', tab: 'logs' },
    { page: 'playground', part: 'speak' },
    { page: 'activity', part: 'logs', slot: 'a' },
  ] as const) {
    expect(readPlace(hashOf(place))).toEqual(place);
  }
  expect(readPlace('#/slots/x/nonsense')).toEqual({ page: 'slots', slot: 'x', tab: 'explain' });
  expect(readPlace('')).toEqual({ page: 'slots' });
  expect(readPlace('#/playground/logs')).toEqual({ page: 'playground' });
  expect(readPlace('#/%E0%A4%A/x')).toEqual({ page: 'slots', slot: 'x', tab: 'explain' });
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1000 B'],
  [1536, '1.5 KiB'],
  [1023.7 * 1024 ** 2, '1024 MiB'],
  [1024 ** 3 * 21.2, '21.2 GiB'],
  [1024 ** 5 * 12, '12288 TiB'],
])('%d bytes are %s, also in messages of the service', (bytes, text) => {
  expect([formatBytes(bytes), formatSize(bytes)]).toEqual([text, text]);
});

test.each([
  [0.042, '42 ms', '1 s'],
  [0.9996, '1.0 s', '1 s'],
  [9.96, '10.0 s', '10 s'],
  [75, '75 s', '75 s'],
  [600, '10 min', '10 min'],
  [7200, '2 h', '2 h'],
  [864_000, '10 d', '10 d'],
])('%d seconds are %s, and an age of %s', (seconds, text, age) => {
  expect(formatSeconds(seconds)).toBe(text);
  expect(formatAge(seconds)).toBe(age);
});

test('a streamed answer collects content, reasoning, tool calls, the finish reason and errors', () => {
  const delta = (content: object, more: object = {}) => JSON.stringify({ choices: [{ delta: content, ...more }] });
  const events = [
    delta({ role: 'assistant', content: null }),
    delta({ reasoning_content: 'Hm' }),
    delta({ content: 'Hel' }),
    'not JSON',
    delta({ content: 'lo' }),
    delta({ tool_calls: [{ index: 0, function: { name: 'look', arguments: '{"a"' } }] }),
    delta({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
    delta({}, { finish_reason: 'length' }),
    '[DONE]',
  ];
  const answer = events.reduce((before, data) => extendAnswer(before, data), EMPTY_ANSWER);
  expect(answer).toEqual({
    role: 'assistant',
    images: [],
    content: 'Hello',
    reasoning: 'Hm',
    tools: [{ id: '', name: 'look', args: '{"a":1}' }],
    ended: 'length',
  });
  expect(extendAnswer(answer, '{"error":{"message":"Broken"}}').ended).toBe('Broken');
});

test('only web and mail addresses become links', () => {
  expect(safeLink(' https://example.org/a ')).toBe('https://example.org/a');
  for (const bad of ['javascript:alert(1)', 'data:text/html,x', '//example.org', 'JaVaScRiPt:1', '', 'file:///etc/passwd'])
    expect(safeLink(bad)).toBeUndefined();
});

test('rates are computed between two lines of a slot, also where its counts began anew', () => {
  const before = { output_tokens: 10, first_tokens: 2, first_token_seconds: 1 };
  const after = { output_tokens: 40, first_tokens: 4, first_token_seconds: 2 };
  expect(ratesBetween(before, after, 6)).toEqual({ firstTokenSeconds: 0.5, tokensPerSecond: 5 });
  expect(ratesBetween(undefined, after, 6)).toEqual({ firstTokenSeconds: 0.5, tokensPerSecond: 40 / 6 });
  expect(ratesBetween(after, before, 6)).toEqual({ firstTokenSeconds: 0.5, tokensPerSecond: 10 / 6 });
  expect(ratesBetween(after, after, 6)).toEqual({ firstTokenSeconds: undefined, tokensPerSecond: 0 });
});

test('a sparkline ends at the right edge, and its highest value is at the top', () => {
  expect(sparklinePoints([], { width: 10, height: 10, most: 3 })).toBe('');
  expect(sparklinePoints([5, 0, 10], { width: 10, height: 10, most: 2 })).toBe('0.0,9.0 10.0,1.0');
});

test('a log keeps its newest 5,000 lines, and finds matches', () => {
  const log = ['a\nb', 'c\nd\n', 'e'].reduce(appendText, NO_LINES);
  expect(log).toEqual({ lines: ['a', 'bc', 'd'], open: 'e' });
  expect(appendText(NO_LINES, 'x\n'.repeat(6000)).lines).toHaveLength(5000);
  expect(matchesOf(['Error: x', 'fine', 'an error'], 'error')).toEqual([0, 2]);
  expect(matchesOf(['a'], ' ')).toEqual([]);
});

describe('a slot', () => {
  const slot = (name: string, state: Slot['status']['state'], conditions: readonly Partial<Condition>[] = []): Slot => ({
    name: SlotName.parse(name),
    spec: { enabled: true },
    generation: 1,
    resource_version: 'a',
    status: {
      state,
      conditions: conditions.map((given) => ({
        type: 'Ready',
        status: 'False',
        reason: 'Crashed',
        message: 'It crashed',
        last_transition_at: null,
        observed_generation: 1,
        ...given,
      })),
      observed_generation: 1,
      provider: 'gguf',
      backend: 'cpu',
      model: 'demo-fox',
      wanted_model: 'demo-fox',
      capabilities: [],
      endpoint: null,
      memory_bytes: 10,
      restarts: 0,
      replicas: null,
      since: '2026-01-01T00:00:10.000Z',
      progress: null,
      rollout: null,
      problems: [],
    },
  });
  const stalled = slot('z', 'offline', [{ type: 'Stalled', status: 'True', reason: 'CrashLoop' }]);

  test('that needs attention comes first', () => {
    expect(needsAttention(stalled)?.reason).toBe('CrashLoop');
    expect(needsAttention(slot('a', 'offline', [{ type: 'Stalled', status: 'False' }]))).toBeUndefined();
    expect(orderSlots([slot('b', 'ready'), slot('a', 'idle'), stalled])).toEqual(['z', 'a', 'b']);
    expect(summarize([slot('b', 'ready'), slot('a', 'idle'), slot('c', 'ready'), stalled])).toEqual({
      needAttention: 1,
      states: [
        { state: 'ready', count: 2 },
        { state: 'idle', count: 1 },
        { state: 'offline', count: 1 },
      ],
      memoryBytes: 30,
    });
  });

  test('that cannot answer before somebody repairs or enables it is offered last', () => {
    const off = { ...slot('a', 'offline'), spec: { enabled: false } };
    const slots = new Map([off, stalled, slot('b', 'offline'), slot('c', 'ready')].map((each) => [each.name, each]));
    expect(ableFirst(['a', 'b', 'c', 'gone', 'z'], (name) => slots.get(SlotName.parse(name)))).toEqual(['b', 'c', 'a', 'gone', 'z']);
  });

  test('is found by its name, model and state together', () => {
    expect(matchesSearch(slot('primary', 'ready'), ' FOX prim ready')).toBe(true);
    expect(matchesSearch(slot('primary', 'ready'), 'prim owl')).toBe(false);
    expect(matchesSearch(slot('primary', 'ready'), 'attention')).toBe(false);
    expect(matchesSearch(stalled, 'needs attention')).toBe(true);
  });

  test('is changed by new events, but not by past ones', () => {
    const warming = slot('a', 'warming');
    const later = afterEntry(warming, { to: 'ready', at: '2026-01-01T00:00:11.000Z' });
    expect(later.status).toMatchObject({ state: 'ready', since: '2026-01-01T00:00:11.000Z' });
    expect(afterEntry(warming, { to: 'offline', at: '2026-01-01T00:00:09.000Z' })).toBe(warming);
    expect(afterEntry(warming, { to: null, at: '2026-01-01T00:00:11.000Z' })).toBe(warming);
  });

  test('is drawn again only if several events together leave it in another state', () => {
    const slots = new Map([slot('a', 'ready'), slot('b', 'ready')].map((each) => [String(each.name), each]));
    const entries = (['a', 'b', 'gone'] as const).flatMap((name) =>
      (['serving', name === 'a' ? 'ready' : 'idle'] as const).map((to, index) => {
        return { slot: SlotName.parse(name), to, at: `2026-01-01T00:00:2${index}.000Z` };
      }),
    );
    const moved = movedBy(entries, (name) => slots.get(name));
    expect(moved).toEqual([slot('b', 'idle')].map((each) => ({ ...each, status: { ...each.status, since: '2026-01-01T00:00:21.000Z' } })));
  });
});

test('the back-off grows to ten seconds, with jitter', () => {
  expect(retryDelayMs(0, 0)).toBe(250);
  expect(retryDelayMs(0, 1)).toBe(500);
  expect(retryDelayMs(99, 1)).toBe(10_000);
});
