/** Turns of conversations through two gateways in front of the same replicas, which know nothing of each other. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { publish } from './support/board-fixture.ts';
import { CHAT, post } from './support/client.ts';
import { startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from './support/gateway-fixture.ts';

const CONVERSATIONS = 36;
const TURNS = 4;

let replicas: readonly FakeUpstream[];
let gateways: readonly GatewayFixture[];

beforeEach(async () => {
  [replicas, gateways] = await Promise.all([
    Promise.all(Array.from({ length: 4 }, () => startUpstream({ text: 'Yes' }))),
    Promise.all([startGateway(), startGateway()]),
  ]);
});
afterEach(async () => {
  await Promise.all([...gateways.map((gateway) => gateway.close()), ...replicas.map((replica) => replica.kill())]);
});

const offer = (present: readonly FakeUpstream[]): void => {
  // Pods are listed in another order by each gateway.
  const targets = present.map(({ port }) => ({ workload: 'w', port }));
  gateways.forEach(({ board }, index) => publish(board, { name: 'primary', targets: index === 0 ? targets : targets.toReversed() }));
};

/** Returns the index of the replica that has answered. */
async function ask(path: string, body: object, turn: number, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const before = replicas.map(({ seen }) => seen.length);
  const answer = await post(gateways[turn % 2]?.port ?? 0, path, JSON.stringify(body), { headers });
  expect(answer.status).toBe(200);
  return replicas.findIndex(({ seen }, index) => seen.length > (before[index] ?? 0));
}

/** Returns the replicas that have answered each of the conversations. */
async function converse(): Promise<readonly (readonly number[])[]> {
  const answered: number[][] = Array.from({ length: CONVERSATIONS }, () => []);
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [index, by] of answered.entries()) {
      const earlier = Array.from({ length: turn }, (_, past) => [
        { role: 'assistant', content: `Answer ${past}` },
        { role: 'user', content: `Question ${past + 1}` },
      ]);
      const messages = [{ role: 'system', content: 'Be brief' }, { role: 'user', content: `Question of ${index}` }, ...earlier.flat()];
      by.push(await ask(CHAT, { model: 'primary', messages }, turn + index));
    }
  }
  return answered;
}

const homesOf = (answered: readonly (readonly number[])[]): readonly (number | undefined)[] =>
  answered.map((by) => (new Set(by).size === 1 ? by[0] : undefined));

describe('Conversations with several replicas', () => {
  test('stay on their replica on every gateway, and only the share of one that comes or goes moves', async () => {
    offer(replicas.slice(0, 3));
    const before = homesOf(await converse());
    expect(before).not.toContain(undefined);
    expect(new Set(before)).toEqual(new Set([0, 1, 2]));
    offer(replicas);
    const wider = homesOf(await converse());
    expect(wider).not.toContain(undefined);
    for (const [index, home] of wider.entries()) if (home !== 3) expect(home).toBe(before[index]);
    offer(replicas.slice(1));
    const narrower = homesOf(await converse());
    for (const [index, home] of wider.entries()) if (home !== 0) expect(narrower[index]).toBe(home);
    expect(narrower).not.toContain(0);
  }, 120_000);

  test('follow a name that the client gives them', async () => {
    offer(replicas);
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const by = new Set<number>();
      for (let turn = 0; turn < 6; turn += 1)
        by.add(await ask(CHAT, { model: 'primary', messages: [{ role: 'user', content: `${turn}` }] }, turn, { 'X-Session-Id': name }));
      expect(by.size).toBe(1);
    }
  });

  test('leave other requests in turns', async () => {
    offer(replicas.slice(0, 3));
    const by = [];
    for (let turn = 0; turn < 6; turn += 1) by.push(await ask('/v1/embeddings', { model: 'primary', input: 'Hi', user: 'u' }, 0));
    expect(by.toSorted((one, other) => one - other)).toEqual([0, 0, 1, 1, 2, 2]);
  });
});
