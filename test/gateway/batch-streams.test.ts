import { beforeEach, expect, test } from '@jest/globals';
import { createReadCoalescer } from '../../src/gateway/batch-streams.ts';

let now: number;
let turn: number;
let timers: { readonly at: number; readonly callback: () => void }[];
let log: string[];
let read: (name: string) => void;

beforeEach(() => {
  [now, turn, timers, log] = [1000, 1, [], []];
  const coalesce = createReadCoalescer({
    now: () => now,
    turn: () => turn,
    after: (ms, callback) => void timers.push({ at: now + ms, callback }),
  });
  read = (name) => coalesce({ hold: () => void log.push(`hold ${name}`), release: () => void log.push(`release ${name} at ${now}`) });
});

/** Reads so many streams in one turn, which takes so long. */
function turnOf(names: readonly string[], ms: number): void {
  turn += 1;
  for (const [index, name] of names.entries()) {
    if (index > 0) now += ms / (names.length - 1);
    read(name);
  }
}

function runTimers(untilMs: number): void {
  for (;;) {
    const [next] = timers.toSorted((one, other) => one.at - other.at);
    if (next === undefined || next.at > untilMs) break;
    timers.splice(timers.indexOf(next), 1);
    now = Math.max(now, next.at);
    next.callback();
  }
}

test('short turns hold nothing, however long the loop waits between them', () => {
  for (let index = 0; index < 20; index += 1) {
    turnOf(['a', 'b', 'c'], 7);
    now += 500;
  }
  expect(log).toEqual([]);
  expect(timers).toEqual([]);
});

test('in a long turn, streams are held as soon as it is long, and all of them in the next one', () => {
  turnOf(['a', 'b', 'c'], 16);
  expect(log).toEqual(['hold b', 'hold c']);
  turnOf(['d'], 0);
  expect(log).toEqual(['hold b', 'hold c', 'hold d']);
});

test('a stream is held for two turns, is released in its order, and nothing is left', () => {
  turnOf(['a', 'b', 'c'], 20);
  runTimers(5000);
  expect(log).toEqual(['hold b', 'hold c', 'release b at 1032', 'release c at 1060']);
  expect(timers).toEqual([]);
});

test('no stream is held for long', () => {
  turnOf(['a', 'b'], 900);
  runTimers(5000);
  expect(log).toEqual(['hold b', 'release b at 1940']);
});

test('after a short turn, streams are read as they come again', () => {
  turnOf(['a', 'b'], 20);
  runTimers(5000);
  log = [];
  turnOf(['a'], 0);
  turnOf(['a', 'b'], 2);
  turnOf(['a', 'b'], 2);
  expect(log).toEqual(['hold a']);
});
