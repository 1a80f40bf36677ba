/** `GET /api/cluster`: who leads, and the pods of the slots. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { PodListing } from '../../../src/schema/status/cluster-listing.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { Cluster } from '../../../src/schema/status/resource-answers.ts';
import { startWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => void (world = await startWorld({ runtime: 'kube' })));
afterEach(async () => await world.close());

const get = async (query: string) => await fetch(`${world.url}/api/cluster${query}`);
const ask = async (query = '') => Cluster.parse(await (await get(query)).json());

const pod = (name: string, rest: Partial<PodListing> = {}): PodListing => ({
  name,
  slot: SlotName.parse('primary'),
  phase: 'Running',
  ready: true,
  terminating: false,
  restarts: 0,
  node: 'node1',
  createdAt: Date.parse('2026-11-21T09:00:00Z'),
  waiting: undefined,
  ...rest,
});
const WAITING = { reason: 'ImagePullBackOff' as const, message: 'The node cannot pull the image' };

test('a service that does not run in a cluster says so, and lists no pods', async () => {
  expect(await (await get('')).json()).toEqual({ replica: null, leader: null, leads: true, pods: [], pods_total: 0, pods_ready: 0 });
});

test('a follower names the leader and itself', async () => {
  world.cluster = { replica: 'gateway-b', leader: 'gateway-a', leads: false, pods: [] };
  expect(await ask()).toMatchObject({ replica: 'gateway-b', leader: 'gateway-a', leads: false });
  world.cluster = { replica: 'gateway-b', leader: undefined, leads: false, pods: [] };
  expect(await ask()).toMatchObject({ leader: null });
});

test('lists the pods that need attention first, of one slot or of all, up to a limit that hides no number', async () => {
  const pods = [
    pod('z'),
    pod('a'),
    pod('starting', { ready: false, phase: 'Pending' }),
    pod('leaving', { ready: false, terminating: true }),
    pod('stuck', { ready: false, phase: 'Pending', node: undefined, waiting: WAITING, restarts: 3 }),
    pod('other', { slot: SlotName.parse('embed') }),
    pod('stray', { slot: undefined, createdAt: 0 }),
  ];
  world.cluster = { replica: 'r', leader: 'r', leads: true, pods };
  const body = await ask();
  expect(body.pods.map(({ name }) => name)).toEqual(['stuck', 'starting', 'leaving', 'stray', 'other', 'a', 'z']);
  expect(body).toMatchObject({ pods_total: 7, pods_ready: 4 });
  expect(body.pods[0]).toEqual({
    name: 'stuck',
    slot: 'primary',
    phase: 'Pending',
    ready: false,
    terminating: false,
    restarts: 3,
    node: null,
    created_at: '2026-11-21T09:00:00.000Z',
    reason: 'ImagePullBackOff',
    message: WAITING.message,
  });
  expect(body.pods[3]).toMatchObject({ slot: null, created_at: null, reason: null, message: '' });
  expect(await ask('?limit=2')).toMatchObject({ pods: [{ name: 'stuck' }, { name: 'starting' }], pods_total: 7, pods_ready: 4 });
  expect(await ask('?slot=embed')).toMatchObject({ pods: [{ name: 'other' }], pods_total: 1, pods_ready: 1 });
});

test('cuts a long message', async () => {
  const waiting = { ...WAITING, message: 'x'.repeat(50_000) };
  world.cluster = { replica: 'r', leader: 'r', leads: true, pods: [pod('stuck', { waiting })] };
  const message = (await ask()).pods[0]?.message;
  expect(message).toHaveLength(1001);
  expect(message).toMatch(/x…$/);
});

test.each(['?limit=0', '?limit=1001', '?limit=x', '?slot=Not%20a%20name', '?color=red'])('refuses "%s"', async (query) => {
  const answer = await get(query);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: 'request.invalid' } });
});
