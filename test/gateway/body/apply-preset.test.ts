import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createPresetEditor } from '../../../src/gateway/body/apply-preset.ts';

const applyPreset = createPresetEditor();

type Table = Readonly<Record<string, unknown>>;
const edited = (body: string, set: Table, force: Table = {}): string | undefined => {
  const pieces = applyPreset([Buffer.from(body)], { set, force });
  return pieces && Buffer.concat(pieces).toString();
};

describe('applyPreset()', () => {
  test('adds what is missing at the end, and leaves everything else as it is', () => {
    expect(edited('\ufeff { "model" : "primary:a",\n "x":[1, {"temperature":9}] }\n ', { temperature: 0.6, stop: ['"', 'é'] })).toBe(
      '\ufeff { "model" : "primary:a",\n "x":[1, {"temperature":9}] ,"temperature":0.6,"stop":["\\"","é"]}\n ',
    );
    expect(edited('{"model":"a","temperature": 1e-1}', { temperature: 0.6 })).toBe('{"model":"a","temperature": 1e-1}');
    expect(edited('{"model":"a"}', {})).toBe('{"model":"a"}');
  });

  test('takes null for a missing value, and the last one of repeated keys', () => {
    expect(edited('{"temperature":null ,"model":"a"}', { temperature: 0.6 })).toBe('{"temperature":0.6 ,"model":"a"}');
    expect(edited('{"seed":null,"model":"a","seed":3}', { seed: 5 })).toBe('{"seed":null,"model":"a","seed":3}');
    expect(edited('{"seed":3,"model":"a","seed":null}', { seed: 5 })).toBe('{"seed":3,"model":"a","seed":5}');
  });

  test('replaces what it forces, wherever it stands and however its key is written', () => {
    const force = { grammar: { a: [true] }, top_k: 1 };
    expect(edited('{"t\\u006fp_k" : 40,"model":"a","grammar": {"b":"}"} ,"top_k":[2]}', {}, force)).toBe(
      '{"t\\u006fp_k" : 1,"model":"a","grammar": {"a":[true]} ,"top_k":1}',
    );
    expect(edited('{"model":"a","top_k":"x"}', { top_k: 2 }, { top_k: 3 })).toBe('{"model":"a","top_k":3}');
  });

  test('adds to an object without fields too', () => {
    for (const [body, wanted] of [
      ['{}', '{"seed":5,"top_k":1}'],
      ['\ufeff{ \n}\n', '\ufeff{ \n"seed":5,"top_k":1}\n'],
    ] as const) {
      expect(edited(body, { seed: 5 }, { top_k: 1 })).toBe(wanted);
      const chunks = [...Buffer.from(body)].map((byte) => Buffer.from([byte]));
      expect(Buffer.concat(applyPreset(chunks, { set: { seed: 5 }, force: { top_k: 1 } }) ?? []).toString()).toBe(wanted);
    }
  });

  test('copies no body that has none of the keys, and leaves its bytes as they are', () => {
    const chunks = ['{"model":"a","text":"', 'x'.repeat(100_000), '" }\n'].map((text) => Buffer.from(text));
    const pieces = applyPreset(chunks, { set: {}, force: {}, cap: { max_tokens: 5 } }, { lacksKeys: true }) ?? [];
    expect(Buffer.concat(pieces).toString()).toBe(`{"model":"a","text":"${'x'.repeat(100_000)}" ,"max_tokens":5}\n`);
    expect(pieces[1]).toBe(chunks[1]);
    expect(Buffer.concat(chunks).toString()).toBe(`{"model":"a","text":"${'x'.repeat(100_000)}" }\n`);
  });

  test('refuses what is no complete object', () => {
    for (const body of ['{"model":"a"', '{"model":"a"}}', '["model"]', '{"model":"a",}'])
      expect(applyPreset([Buffer.from(body), Buffer.alloc(0)], { set: { seed: 1 }, force: {} })).toBeUndefined();
  });

  test('means what the same change of the parsed body means, however the body is cut', () => {
    const key = fc.constantFrom('temperature', 'stop', 'tools', 'a"b', 'ü', '');
    const table = fc.dictionary(key, fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(
        table,
        table,
        table,
        fc.array(fc.nat({ max: 200 }), { maxLength: 5 }),
        fc.nat({ max: 3 }),
        (rest, set, force, cuts, indent) => {
          const request: Table = rest;
          const body = Buffer.from(JSON.stringify(request, undefined, indent));
          const places = [0, ...cuts.map((cut) => cut % body.length).toSorted((a, b) => a - b), body.length];
          const chunks = places.slice(1).map((to, index) => body.subarray(places[index], to));
          const pieces = applyPreset(chunks, { set, force });
          const lacks = Object.entries(set).filter(([name]) => request[name] === undefined || request[name] === null);
          // As JSON, which has no negative zero.
          const meant: unknown = JSON.parse(JSON.stringify({ ...request, ...Object.fromEntries(lacks), ...force }));
          expect(JSON.parse(Buffer.concat(pieces ?? []).toString())).toEqual(meant);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('The name of a remote', () => {
  const naming = { set: {}, force: { model: 'their/model' } };
  const rename = (text: string, hasModel = true): string | undefined => {
    const pieces = createPresetEditor()([Buffer.from(text)], naming, { hasModel });
    return pieces && Buffer.concat(pieces).toString();
  };

  test.each([
    ['{"model":"a"}', '{"model":"their/model"}'],
    ['{ "messages": [], "model" :\n "a b" , "n":1 }', '{ "messages": [], "model" :\n "their/model" , "n":1 }'],
    ['{"model":"a\\"b"}', '{"model":"their/model"}'],
    ['{"mod\\u0065l":"a"}', '{"mod\\u0065l":"their/model"}'],
    ['{"x":{"model":"inner"},"model":"a"}', '{"x":{"model":"inner"},"model":"their/model"}'],
    ['{"type":"model","model":"a"}', '{"type":"model","model":"their/model"}'],
    ['{"model":"a","model":"b"}', '{"model":"their/model","model":"their/model"}'],
    ['{"text":"say \\"model\\":\\"x\\"","model":"a"}', '{"text":"say \\"model\\":\\"x\\"","model":"their/model"}'],
  ])('takes the place of the one in %s', (text, expected) => expect(rename(text)).toBe(expected));

  test('is added where the only one is not that of the request', () => {
    expect(rename('{"x":{"model":"inner"}}', false)).toBe('{"x":{"model":"inner"},"model":"their/model"}');
  });
});
