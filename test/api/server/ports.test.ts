/** Which routes answer on which port where management has one of its own: the whole table of routes, over HTTP, against a list that is written by hand. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allowEveryone } from '../../../src/auth/check-token.ts';
import { isForModelPort } from '../../../src/api/server/decide/decide-site.ts';
import { parseSettings } from '../../../src/schema/settings/settings.ts';
import { startReachedRoutes, type ReachedRoutes } from '../../auth/reached-routes.ts';

/** What the port for models answers. Everything else is for management. */
const FOR_MODELS = [
  'GET /api/health/ready',
  'GET /api/health/system',
  'GET /api/images/cache/:file',
  'GET /ollama/api/ps',
  'GET /ollama/api/tags',
  'GET /ollama/api/version',
  'GET /v1/audio/voices',
  'GET /v1/models',
  'GET /v1/models/*',
  'GET /v1/realtime',
  'POST /infill',
  'POST /ollama/api/chat',
  'POST /ollama/api/embed',
  'POST /ollama/api/generate',
  'POST /ollama/api/show',
  'POST /rerank',
  'POST /v1/audio/speech',
  'POST /v1/audio/transcriptions',
  'POST /v1/audio/translations',
  'POST /v1/chat/completions',
  'POST /v1/classify',
  'POST /v1/completions',
  'POST /v1/detokenize',
  'POST /v1/embeddings',
  'POST /v1/images/edits',
  'POST /v1/images/generations',
  'POST /v1/images/variations',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1/rerank',
  'POST /v1/reranking',
  'POST /v1/rerankings',
  'POST /v1/responses',
  'POST /v1/score',
  'POST /v1/tokenize',
  'POST /v2/rerank',
];

test.each([
  [{ tag: 'inference', access: 'v1' }, true],
  [{ tag: 'inference', access: 'any' }, true],
  [{ tag: 'models', access: 'open' }, true],
  [{ tag: 'models', access: 'admin' }, false],
  [{ tag: 'system', access: 'open', anySite: true }, true],
  [{ tag: 'system', access: 'open' }, false],
  [{ tag: 'slots', access: 'read' }, false],
  [{ tag: 'a new one', access: 'v1' }, false],
] as const)('a route %j is for the port of models: %s', (route, answers) => {
  expect(isForModelPort(route)).toBe(answers);
});

describe('a service with a port for management', () => {
  let routes: ReachedRoutes;
  beforeAll(async () => {
    routes = await startReachedRoutes(allowEveryone);
  }, 60_000);
  afterAll(async () => await routes.close());

  async function reached(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const name of routes.names) {
      const answer = await routes.send(name, []);
      if (answer === 'reached') found.push(name);
      else expect([name, answer]).toEqual([name, 'route.not_found']);
    }
    return found.toSorted();
  }

  test('answers every route on one port while it has only one', async () => {
    expect(await reached()).toEqual(routes.names.toSorted());
  });

  test('then answers models and probes on the first port, and every route on the second', async () => {
    await routes.useManagementPort();
    expect(await reached()).toEqual(routes.names.toSorted());
    routes.useModelPort();
    expect(await reached()).toEqual(FOR_MODELS);
    expect(await routes.send('GET /api/metrics', [], 'HEAD')).toBe('404');
    expect(await routes.send('GET /api/health/ready', [], 'HEAD')).toBe('reached');
  });
});

test('two equal ports are refused', () => {
  const parsed = parseSettings({ SVC_LISTEN: '0.0.0.0:8080', SVC_MANAGEMENT_LISTEN: '127.0.0.1:8080' });
  expect(parsed).toEqual({ ok: false, problems: [expect.stringContaining('have the same port 8080')] });
  expect(parseSettings({ SVC_MANAGEMENT_LISTEN: '127.0.0.1:8081' }).ok).toBe(true);
});
