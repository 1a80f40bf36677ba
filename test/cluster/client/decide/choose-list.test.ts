import { describe, expect, test } from '@jest/globals';
import { afterFailedList, chooseList, isNewest, type ListNeeds, type ListWay } from '../../../../src/cluster/client/decide/choose-list.ts';
import type { Reason } from '../../../../src/schema/status/reasons.ts';

const STREAMED_NEWEST: ListWay = { streamed: true, notOlderThan: undefined };
const STREAMED: ListWay = { streamed: true, notOlderThan: '7' };
const CACHED: ListWay = { streamed: false, notOlderThan: '7' };
const ANY: ListWay = { streamed: false, notOlderThan: '0' };
const NEWEST: ListWay = { streamed: false, notOlderThan: undefined };

describe('chooseList()', () => {
  test.each<[string, ListNeeds, ListWay]>([
    ['a first list', { version: '', newest: false, streams: true }, STREAMED_NEWEST],
    ['a first list without streams', { version: '', newest: false, streams: false }, ANY],
    ['a later list', { version: '7', newest: false, streams: true }, STREAMED],
    ['a later list without streams', { version: '7', newest: false, streams: false }, CACHED],
    ['the newest state', { version: '7', newest: true, streams: true }, STREAMED_NEWEST],
    ['the newest state without streams', { version: '7', newest: true, streams: false }, NEWEST],
  ])('reads %s', (_what, needs, way) => {
    expect(chooseList(needs)).toEqual(way);
  });

  test.each<[string, ListNeeds, Reason, readonly ListWay[]]>([
    ['a server without streams and with a lagging cache', { version: '7', newest: false, streams: true }, 'Invalid', [STREAMED, CACHED]],
    ['a version that is gone', { version: '7', newest: false, streams: true }, 'Expired', [STREAMED, STREAMED_NEWEST, NEWEST]],
    ['a version that a cache does not have', { version: '7', newest: false, streams: false }, 'Expired', [CACHED, NEWEST]],
    ['no right to watch', { version: '', newest: false, streams: true }, 'Forbidden', [STREAMED_NEWEST, ANY]],
    ['a storage that cannot stream', { version: '7', newest: true, streams: true }, 'ApiFailed', [STREAMED_NEWEST, NEWEST]],
    ['an unreachable server', { version: '7', newest: false, streams: true }, 'ApiUnreachable', [STREAMED]],
    ['a busy server', { version: '', newest: false, streams: false }, 'ApiBusy', [ANY]],
    ['a refused list', { version: '', newest: true, streams: false }, 'Invalid', [NEWEST]],
  ])('tries these ways one after the other with %s', (_what, needs, reason, ways) => {
    const tried: ListWay[] = [];
    for (let next: ListNeeds | undefined = needs; next !== undefined;) {
      const way = chooseList(next);
      tried.push(way);
      next = afterFailedList(way, next, reason);
    }
    expect(tried).toEqual(ways);
  });

  test('knows which answers contain everything that was written before', () => {
    expect([STREAMED_NEWEST, NEWEST, STREAMED, CACHED, ANY].map(isNewest)).toEqual([true, true, false, false, false]);
  });
});
