/**
 * Both paths answer alike, whatever a client sends: the same bytes to the client and to the upstream (which returns them), the same end of the connection, the same counts.
 *   SVC_TEST_REQUESTS   how many random requests. Default: 3,000, which takes seconds; `npm run test:long -- alike` tries 1,000,000
 *   SVC_TEST_SEED       the seed of their choice. A failure prints it
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createRandom } from '../../chaos/support/random.ts';
import { startBothPaths, type BothPaths } from './support/both-paths.ts';
import { randomConversation, randomTurn } from './support/random-request.ts';

const REQUESTS = Number(process.env['SVC_TEST_REQUESTS'] ?? 3000);
const SEED = Number(process.env['SVC_TEST_SEED'] ?? Date.now() % 1_000_000);
/** Connections to each of the services. */
const AT_ONCE = 32;
/** Services with traces get the number of requests, divided by this. */
const TRACED_SHARE = 5;
/** Turns are sent one after the other. */
const TURN_SHARE = 10;
const LIMIT_MS = 1_800_000;

describe.each([
  ['random requests, whole and damaged, are answered alike', 'none'],
  ['the same if both paths trace their requests, which have the same phases and name them alike to the upstream', 'both'],
  ['the same if only the fast path traces its requests', 'fast'],
] as const)('%s', (_what, traced) => {
  const requests = traced === 'none' ? REQUESTS : REQUESTS / TRACED_SHARE;
  let both: BothPaths;
  beforeAll(async () => {
    both = await startBothPaths(traced);
  });
  afterAll(() => both.close());

  test(
    'each on its own',
    async () => {
      const random = createRandom(SEED);
      let sent = 0;
      let reported = 0;
      while (sent < requests) {
        const conversations = Array.from({ length: AT_ONCE }, () => randomConversation(random));
        const { fast, node } = await both.compare(conversations);
        const differs = fast.conversations.findIndex((seen, index) => seen !== node.conversations[index]);
        if (differs !== -1) {
          const damaged = conversations[differs]?.map((pieces) => pieces.map((piece) => piece.toString('latin1')));
          process.stdout.write(`Seed ${SEED}, after ${sent} requests: ${JSON.stringify(damaged)}\n`);
        }
        expect(fast.conversations[differs]).toBe(node.conversations[differs]);
        expect(fast.reported.join('\n')).toBe(node.reported.join('\n'));
        sent += conversations.flat().length;
        reported += node.reported.length;
      }
      const readByNode = both.readByNode();
      process.stdout.write(`${sent} requests: ${reported} counted, ${readByNode} of them read by Node, seed ${SEED}\n`);
      expect(reported - readByNode).toBeGreaterThan(sent / 10);
      expect(readByNode).toBeGreaterThan(sent / 10);
    },
    LIMIT_MS,
  );

  test(
    'turns of conversations meet the same replica',
    async () => {
      const random = createRandom(SEED);
      const replicas = new Set<string>();
      for (let sent = 0; sent < requests / TURN_SHARE; sent += 1) {
        const { fast, node } = await both.compare([randomTurn(random)]);
        expect(fast.conversations).toEqual(node.conversations);
        expect(fast.reported).toEqual([`spread /v1/chat/completions 200${traced === 'both' ? ' auth attempt' : ''}`]);
        expect(fast.reported).toEqual(node.reported);
        for (const [, port = ''] of node.conversations.join('').matchAll(/host: 127\.0\.0\.1:(\d+)/g)) replicas.add(port);
      }
      expect(replicas.size).toBe(3);
    },
    LIMIT_MS,
  );
});
