import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ERROR_CODES } from '../../../src/schema/words/error-codes.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';

const TEXT = '[model]\ndefault = "a"\n';
let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.save(SlotName.parse('primary'), TEXT);
  await world.idle();
});
afterAll(() => world.close());

const paths = [
  ['PUT', '/api/slots/primary'],
  ['PATCH', '/api/slots/primary'],
  ['POST', '/api/slots/primary/load'],
  ['POST', '/api/plan'],
  ['POST', '/api/apply'],
] as const;

/** Bodies that are almost valid: valid keys with invalid values. */
const nearBody = fc.record(
  {
    spec: fc.oneof(
      fc.jsonValue(),
      fc.dictionary(fc.constantFrom('model', 'env', 'lifecycle', 'enabled', 'provider', 'zzz'), fc.jsonValue()),
    ),
    resource_version: fc.jsonValue(),
    model: fc.oneof(fc.jsonValue(), fc.string()),
    slots: fc.oneof(fc.jsonValue(), fc.array(fc.record({ name: fc.string(), spec: fc.jsonValue() }))),
    prune: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

describe('bad input', () => {
  test('any body gets an answer of the documented shape, and a refused one changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...paths),
        fc.oneof(
          nearBody.map((body) => JSON.stringify(body)),
          fc.string(),
        ),
        async ([method, path], body) => {
          const before = new Map(world.slots.texts);
          const response = await fetch(world.url + path, { method, body, headers: { 'content-type': 'application/json' } });
          const text = await response.text();
          expect(response.status).toBeLessThan(500);
          if (response.ok) return;
          const { error } = JSON.parse(text);
          expect(Object.keys(ERROR_CODES)).toContain(error.code);
          expect(error).toMatchObject({ message: expect.any(String), type: expect.any(String), origin: 'gateway' });
          expect(error).toHaveProperty('param');
          expect(world.slots.texts).toEqual(before);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('any query, header and slot name gets an answer of the documented shape', async () => {
    const reads = ['logs', 'timeline', 'explain', ''];
    await fc.assert(
      fc.asyncProperty(
        fc.string(),
        fc.constantFrom(...reads),
        fc.string(),
        fc.string({ unit: 'grapheme-ascii' }),
        async (name, rest, query, header) => {
          const path = `/api/slots/${encodeURIComponent(name)}/${rest}?tail=${encodeURIComponent(query)}&limit=${encodeURIComponent(query)}`;
          const response = await fetch(world.url + path, { headers: { 'if-match': header, 'last-event-id': header } });
          expect(response.status).toBeLessThan(500);
          if (!response.ok) expect(JSON.parse(await response.text()).error.origin).toBe('gateway');
          else await response.text();
        },
      ),
      { numRuns: 200 },
    );
  });
});
