import { expect, test } from '@jest/globals';
import { partOf } from '../../../../src/gateway/traffic/decide/turns.ts';
import { shareLimits } from '../../../../src/turbo/workers/decide/share-limits.ts';

const MB = 1024 * 1024;
const LIMITS = {
  SVC_BODY_LIMIT: 64 * MB,
  SVC_BUFFER_LIMIT: 256 * MB,
  SVC_MAX_CONNECTIONS: 10_000,
  SVC_PARK_LIMIT: 64,
  SVC_SPOOL_LIMIT: 512 * MB,
  SVC_CONTROL_PLANE: 'shared',
} as const;

test.each([2, 3, 4, 16, 64])('with %d processes, all shares together stay within the limits', (processes) => {
  const { controller, worker } = shareLimits(LIMITS, processes);
  const workers = processes - 1;
  expect(controller.SVC_BUFFER_LIMIT + workers * worker.SVC_BUFFER_LIMIT).toBeLessThanOrEqual(LIMITS.SVC_BUFFER_LIMIT);
  expect(controller.SVC_PARK_LIMIT + workers * worker.SVC_PARK_LIMIT).toBeLessThanOrEqual(LIMITS.SVC_PARK_LIMIT);
  expect(controller.SVC_SPOOL_LIMIT + workers * worker.SVC_SPOOL_LIMIT).toBe(LIMITS.SVC_SPOOL_LIMIT);
  expect(worker.SVC_MAX_CONNECTIONS * processes).toBeLessThanOrEqual(LIMITS.SVC_MAX_CONNECTIONS);
  expect([controller.shares, worker.shares]).toEqual([processes, processes]);
  // It counts those of the workers as well.
  expect(controller.SVC_MAX_CONNECTIONS).toBe(LIMITS.SVC_MAX_CONNECTIONS);
});

test.each<[string, Partial<typeof LIMITS>, number]>([
  ['half of the memory for bodies', {}, 128 * MB],
  ['enough for the largest body', { SVC_BODY_LIMIT: 160 * MB }, 160 * MB],
  ['three quarters at most', { SVC_BODY_LIMIT: 250 * MB }, 192 * MB],
])('the controller keeps %s', (_, changed, expected) => {
  expect(shareLimits({ ...LIMITS, ...changed }, 4).controller.SVC_BUFFER_LIMIT).toBe(expected);
});

test('a worker has room for several of the largest bodies that it reads', () => {
  const { worker, workerBodyBytes } = shareLimits(LIMITS, 3);
  expect(worker.SVC_BUFFER_LIMIT).toBe(64 * MB);
  expect(workerBodyBytes).toBe(16 * MB);
});

test.each([
  [0, 0],
  [1, 1],
  [3, 1],
  [9, 2],
])('of %d parked requests, each of four processes may have %d', (limit, each) => {
  expect(shareLimits({ ...LIMITS, SVC_PARK_LIMIT: limit }, 4).worker.SVC_PARK_LIMIT).toBe(each);
});

test.each([
  [1, 1, 1, 1],
  [2, 1, 1, 1],
  [8, 1, 7, 1],
  [8, 2, 3, 1],
  [64, 1, 56, 8],
])('of %d requests, each of %d workers beside a service that only decides may have %d, and the service %d', (limit, workers, each, own) => {
  const { controller, worker } = shareLimits({ ...LIMITS, SVC_CONTROL_PLANE: 'separate', SVC_PARK_LIMIT: limit }, workers + 1);
  expect([worker.SVC_PARK_LIMIT, controller.SVC_PARK_LIMIT]).toEqual([each, own]);
  expect([partOf(limit, worker.shares), partOf(limit, controller.shares)]).toEqual([each, own]);
  expect(worker.SVC_MAX_CONNECTIONS * workers).toBe(LIMITS.SVC_MAX_CONNECTIONS);
});
