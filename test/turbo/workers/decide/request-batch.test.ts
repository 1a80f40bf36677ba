import { expect, test } from '@jest/globals';
import { packRequests, unpackRequests, type ReportedRequest } from '../../../../src/turbo/workers/decide/request-batch.ts';
import { slotName } from '../../../gateway/support/board-fixture.ts';

const NOTHING_MORE = { parkedSeconds: undefined, ttftSeconds: undefined, tokens: undefined };
const TRACE = { traceId: 't', spanId: 's', parentId: undefined, method: 'POST', model: 'm', at: 1, ms: 2, phases: [] };
const REQUESTS: readonly ReportedRequest[] = [
  {
    slot: slotName('a'),
    requestId: 'r1',
    caller: 'token:1a2b3c4d',
    blockedSeconds: 0.5,
    route: '/v1/x',
    status: 200,
    seconds: 0.25,
    parkedSeconds: 1.5,
    ttftSeconds: 0.1,
    tokens: { input: 3, output: 0, cached: 2 },
    media: { audioSeconds: 2.5, images: undefined },
    atDoor: false,
    moves: [{ from: slotName('b'), to: slotName('a'), reason: 'stalled' }],
  },
  {
    slot: slotName('a'),
    caller: 'token:1a2b3c4d',
    route: '/v1/x',
    status: 200,
    seconds: 1,
    ...NOTHING_MORE,
    tokens: { input: 0, output: 4, isEstimated: true },
    atDoor: false,
  },
  { slot: undefined, route: '/v1/y', status: 401, seconds: 0, ...NOTHING_MORE, atDoor: true },
  { slot: slotName('a'), route: '/v1/x', status: 200, seconds: 1, ...NOTHING_MORE, atDoor: false, trace: TRACE },
  { slot: slotName('b'), route: '/v1/x', requestId: 'r2', status: 499, seconds: 2, ...NOTHING_MORE, atDoor: false },
  { slot: slotName('a'), route: '/v1/x', status: 503, code: 'slot.loading', seconds: 1, ...NOTHING_MORE, parkedSeconds: 0, atDoor: false },
];

test('requests arrive as they were sent', () => {
  expect(unpackRequests(structuredClone(packRequests(REQUESTS)))).toEqual(REQUESTS);
  expect(unpackRequests(packRequests([]))).toEqual([]);
});

test('names are sent once', () => {
  const { slots, routes } = packRequests(REQUESTS);
  expect([slots, routes]).toEqual([
    ['a', 'b'],
    ['/v1/x', '/v1/y'],
  ]);
});
