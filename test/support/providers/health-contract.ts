/** The part of the contract of providers about probes: an answer of any kind yields a verdict, and only an answer that a working model gives passes. */
import { describe, expect, test } from '@jest/globals';
import type { ModelFacts, ProbeIo, ProbeResponse, Provider } from '../../../src/providers/provider.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { specOf } from './odd-models.ts';

const ENDPOINT = { host: '127.0.0.1', port: 1 };
/** Longer than this, a probe would hold up the next ones. */
const MAX_TIMEOUT_MS = 60_000;

/** Answers that no working model gives. */
const BAD_ANSWERS: Readonly<Record<string, ProbeResponse>> = {
  'no connection': { status: 0, body: '', error: 'Connection refused' },
  'no connection, and nobody says why': { status: 0, body: '' },
  'status 503': { status: 503, body: '{"error":{"message":"Loading model"}}' },
  'status 500': { status: 500, body: '<html>Internal error</html>' },
  'status 404': { status: 404, body: '' },
  'status 401': { status: 401, body: '{"error":"who are you"}' },
  'status 204': { status: 204, body: '' },
  'a redirect': { status: 302, body: '' },
  'an unknown status': { status: 999, body: '' },
  'an empty body': { status: 200, body: '' },
  'a page': { status: 200, body: '<!doctype html><title>Welcome</title>' },
  'JSON of another kind': { status: 200, body: '[1, 2, 3]' },
  null: { status: 200, body: 'null' },
  'an object with nothing in it': { status: 200, body: '{}' },
  'lists with nothing in them': { status: 200, body: '{"choices":[],"data":[],"results":[]}' },
  'half of a body': { status: 200, body: '{"choices":[{"text":"' },
  'a long body': { status: 200, body: 'x'.repeat(64 * 1024) },
};

/** What a server with a sound model answers to a request. */
export type SoundAnswer = (path: string, model: ModelFacts) => ProbeResponse;

export function describeHealthContract(provider: Provider, modelsOf: () => readonly ModelFacts[], sound: SoundAnswer): void {
  describeProbe('a probe', provider, { ask: async (...args) => provider.health(...args), modelsOf, sound });
  const { readiness } = provider;
  if (readiness !== undefined) describeProbe('the first probe', provider, { ask: async (...args) => readiness(...args), modelsOf, sound });
}

interface Probed {
  readonly ask: Provider['health'];
  readonly modelsOf: () => readonly ModelFacts[];
  readonly sound: SoundAnswer;
}

function describeProbe(title: string, provider: Provider, { ask, modelsOf, sound }: Probed): void {
  const { signal } = new AbortController();
  const name = SlotName.parse('mine');

  /** Probes with these answers, one for each request. */
  async function probe(model: ModelFacts, answer: (path: string, method: string) => ProbeResponse) {
    const requests: Parameters<ProbeIo['request']>[1][] = [];
    const io: ProbeIo = {
      async request(endpoint, options) {
        expect(endpoint).toEqual(ENDPOINT);
        requests.push(options);
        return answer(options.path, options.method);
      },
    };
    const health = await ask(ENDPOINT, io, { name, spec: specOf(provider), model }, signal);
    return { health, requests };
  }

  describe(title, () => {
    test('passes with what a sound model answers, each time', async () => {
      for (const model of modelsOf()) {
        const answers = async () => probe(model, (path) => sound(path, model));
        expect((await answers()).health).toEqual({ kind: 'passing' });
        expect((await answers()).health).toEqual({ kind: 'passing' });
      }
    });

    test('asks first whether the server is alive, unless one question is enough for a sound model', async () => {
      const alive = { method: 'GET', path: provider.readyPath };
      for (const model of modelsOf()) {
        const { requests } = await probe(model, (path) => sound(path, model));
        if (title === 'the first probe' || requests.length > 1) expect(requests[0]).toMatchObject(alive);
      }
    });

    test('asks whether the server is alive before it complains, within bounds, and can be cancelled', async () => {
      for (const model of modelsOf()) {
        const { requests } = await probe(model, () => ({ status: 200, body: '{}' }));
        expect(requests).toContainEqual(expect.objectContaining({ method: 'GET', path: provider.readyPath }));
        for (const request of requests) {
          expect(request.timeoutMs).toBeGreaterThan(0);
          expect(request.timeoutMs).toBeLessThanOrEqual(MAX_TIMEOUT_MS);
          expect(request.signal).toBe(signal);
        }
      }
    });

    test.each(Object.entries(BAD_ANSWERS))('does not pass with %s, and says why', async (_what, answer) => {
      for (const model of modelsOf()) {
        const everywhere = await probe(model, () => answer);
        const onlyModel = await probe(model, (path) => (path === provider.readyPath ? { status: 200, body: '{}' } : answer));
        for (const { health } of [everywhere, onlyModel]) {
          expect(title === 'a probe' ? ['loading', 'silent', 'failing'] : ['loading', 'silent', 'failing', 'nonsense']).toContain(
            health.kind,
          );
          if (health.kind !== 'passing') expect(health.message).toMatch(/^[A-Z].{10,1000}$/s);
        }
        // Silence of the cheapest request is what tells a frozen server from a busy one.
        if (answer.status === 0) expect(everywhere.health.kind).toBe('silent');
        expect(onlyModel.health.kind).not.toBe('silent');
        if (answer.status === 503) expect(everywhere.health.kind).toBe('loading');
      }
    });
  });
}
