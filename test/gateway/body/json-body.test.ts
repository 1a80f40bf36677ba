import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JsonBody } from '../../../src/gateway/body/json-body.ts';

function scan(text: string | Buffer, cuts: readonly number[] = []): JsonBody {
  const bytes = Buffer.from(text);
  const scanned = new JsonBody();
  let from = 0;
  for (const cut of [...cuts].map((at) => at % (bytes.length + 1)).toSorted((a, b) => a - b)) {
    scanned.feed(bytes.subarray(from, cut));
    from = cut;
  }
  scanned.feed(bytes.subarray(from));
  return scanned;
}

const cuts = fc.array(fc.nat({ max: 5000 }), { maxLength: 8 });
const key = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('model', 'stream', 'messages', 'mode', 'models', '__proto__', '') },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
);
const value = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('primary', 'é"\\\u0000\n', null, true, false), fc.jsonValue());
const fields = fc.array(fc.tuple(key, value), { maxLength: 6 });
const space = fc.constantFrom('', ' ', '\n\t', '\r\n ');

/** Writes a string as JSON, with the flagged characters as escapes. */
function quote(text: string, escapes: readonly boolean[]): string {
  let out = '';
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charAt(index);
    out += escapes[index] === true ? `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}` : JSON.stringify(unit).slice(1, -1);
  }
  return `"${out}"`;
}

const objectText = fc
  .tuple(
    fields,
    space,
    fc.infiniteStream(fc.boolean()).map((flags) => flags),
  )
  .map(([entries, gap, flags]) => {
    const some = [...flags.take(40)];
    const parts = entries.map(([name, content]) => {
      const written = typeof content === 'string' ? quote(content, some) : JSON.stringify(content);
      return `${gap}${quote(name, some)}${gap}:${gap}${written}${gap}`;
    });
    return `${gap}{${parts.join(',')}}${gap}`;
  });

/** The expected result, from `JSON.parse`: `model` as a string, or undefined if it is null. */
function expected(text: string): { model: string | undefined; isStreamed: boolean; wrong: boolean } {
  const parsed: unknown = JSON.parse(text);
  const own = new Map(Object.entries(Object(parsed)));
  const model = own.get('model');
  return {
    model: typeof model === 'string' ? model : undefined,
    isStreamed: own.get('stream') === true,
    wrong: model !== undefined && model !== null && (typeof model !== 'string' || Buffer.byteLength(model) > 4000),
  };
}

describe('JsonBody', () => {
  test('agrees with JSON.parse on any object, cut anywhere', () => {
    fc.assert(
      fc.property(objectText, cuts, (text, at) => {
        const bytes = Buffer.from(text);
        const want = expected(bytes.toString());
        const got = scan(bytes, at);
        if (want.wrong) {
          expect(got).toMatchObject({ status: 'invalid', problem: { param: 'model' } });
        } else {
          const { status, model, isStreamed } = got;
          expect({ status, model, isStreamed }).toEqual({ status: 'done', model: want.model, isStreamed: want.isStreamed });
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('never calls a text invalid that is an object for JSON.parse, however it was damaged', () => {
    const damage = fc.tuple(objectText, fc.nat(), fc.string({ unit: 'binary', maxLength: 3 }), fc.nat({ max: 4 }));
    fc.assert(
      fc.property(damage, cuts, ([text, at, insert, remove], where) => {
        const place = text.length === 0 ? 0 : at % text.length;
        const damaged = text.slice(0, place) + insert + text.slice(place + remove);
        const got = scan(damaged, where);
        if (got.status !== 'invalid') return;
        let parsed: unknown;
        try {
          parsed = JSON.parse(damaged);
        } catch {
          return;
        }
        const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
        expect(isObject && !expected(damaged).wrong).toBe(false);
      }),
      { numRuns: 3000 },
    );
  });

  test('returns the same result for every way to cut the same bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (bytes, at) => {
        const whole = scan(Buffer.from(bytes));
        const cut = scan(Buffer.from(bytes), at);
        expect([cut.status, cut.model]).toEqual([whole.status, whole.model]);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['a nested key', '{"a":{"model":"x"},"b":[{"model":"y"}]}', undefined],
    ['a repeated key', '{"model":"x","model":"y"}', 'y'],
    ['an escaped key', '{"\\u006d\\u006f\\u0064\\u0065\\u006c":"x"}', 'x'],
    ['an escaped value', '{"model":"\\u00e9\\"\\\\"}', 'é"\\'],
    ['null', '{"model":null}', undefined],
    ['a byte order mark', '\uFEFF{"model":"x"}', 'x'],
    ['an invalid model followed by a valid one', '{"model":5,"model":"x"}', 'x'],
    ['an empty object', '{}', undefined],
  ])('finds the model with %s', (_what, text, model) => {
    for (let cut = 0; cut <= Buffer.byteLength(text); cut += 1) expect(scan(text, [cut])).toMatchObject({ status: 'done', model });
  });

  test.each([
    ['an array', '[{"model":"x"}]'],
    ['a string', '"model"'],
    ['a number', '12'],
    ['text', 'model=x'],
    ['two objects', '{"model":"x"}{}'],
    ['a key without quotes', '{model:"x"}'],
    ['a comma too many', '{"model":"x",}'],
    ['no colon', '{"model" "x"}'],
    ['UTF-16', Buffer.from('{"model":"x"}', 'utf16le')],
    ['a model that is not a string', '{"model":{"a":1}}'],
    ['a model with a bad escape', '{"model":"\\x"}'],
    ['a model of 5000 bytes', `{"model":"${'x'.repeat(5000)}"}`],
  ])('refuses %s', (_what, text) => {
    expect(scan(text).status).toBe('invalid');
  });

  test.each([
    ['[1]', 'The body is not a JSON object'],
    ['{model:"x"}', 'The body is not valid JSON: expected a quoted key'],
    ['{"a":1,}', 'The body is not valid JSON: expected a quoted key'],
    ['{"a" 1}', 'The body is not valid JSON: expected a colon after a key'],
    ['{"a":}', 'The body is not valid JSON: expected a value'],
    ['{"a":"b" "c"}', 'The body is not valid JSON: expected a comma or the end of the object'],
    ['{}{}', 'The body continues after its JSON object: send one object'],
  ])('says what is wrong with %s', (text, message) => {
    expect(scan(text).problem).toEqual({ message, param: null });
  });

  test('needs more while the object is open', () => {
    expect(scan('{"model":"x","messages":[{"a":"}').status).toBe('more');
    expect(scan('').status).toBe('more');
  });

  test('knows the model before the rest has come', () => {
    const scanned = new JsonBody();
    scanned.feed(Buffer.from('{"model":"x","messages":["'));
    expect(scanned).toMatchObject({ status: 'more', modelSeen: true, model: 'x' });
  });

  test.each(['"', '\\', '\\"', '"\\', '\\\\"'])('finds the end of a long text with %s anywhere in it, again and again', (odd) => {
    for (let before = 0; before < 110; before += 1) {
      for (const between of [0, 1, 40, 47, 48, 49, 130]) {
        const long = `${'a'.repeat(before)}${odd}${'b'.repeat(between)}${odd}${'c'.repeat(between)}${odd}`;
        const text = JSON.stringify({ first: long, messages: [long], model: 'x' });
        expect(scan(text, [before + 8, before + 60, before + between + 12])).toMatchObject({ status: 'done', model: 'x' });
      }
    }
  });

  test('handles any depth of nesting', () => {
    const deep = `{"a":${'['.repeat(2_000_000)}${']'.repeat(2_000_000)},"model":"x"}`;
    expect(scan(deep, [10, 1000, 3_000_000])).toMatchObject({ status: 'done', model: 'x' });
  });
});
