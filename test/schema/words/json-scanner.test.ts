import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { jsonFields, JsonScanner, type JsonFilter } from '../../../src/schema/words/json-scanner.ts';
import { decodeJsonString } from '../../../src/schema/words/json-skipper.ts';

/** `a`, each item of `list`, and `a` in each item of `list`. */
const FILTER: JsonFilter<string> = {
  fields: jsonFields<string>({
    a: { tag: 'a' },
    list: { tag: 'list', items: { tag: 'item', fields: jsonFields({ a: { tag: 'inner' } }) } },
  }),
};

/** The places of the filter, found on the parsed object. */
function expected(value: Readonly<Record<string, unknown>>): string[] {
  const seen: string[] = [];
  const note = (tag: string, path: string, found: unknown): void => {
    seen.push(
      typeof found === 'object' && found !== null
        ? `${tag} ${path} ${Array.isArray(found) ? '[' : '{'}`
        : `${tag} ${path} ${JSON.stringify(found).slice(0, 6)}`,
    );
  };
  for (const [key, field] of Object.entries(value)) {
    if (key === 'a') note('a', 'a', field);
    if (key !== 'list') continue;
    note('list', 'list', field);
    for (const [index, item] of Array.isArray(field) ? field.entries() : []) {
      note('item', `list[${index}]`, item);
      if (typeof item !== 'object' || item === null || Array.isArray(item) || !Object.hasOwn(item, 'a')) continue;
      note('inner', `list[${index}].a`, Reflect.get(item, 'a'));
    }
  }
  return seen;
}

function scan(text: string, chunkBytes: number): { readonly status: string; readonly seen: string[] } {
  const seen: string[] = [];
  const open: string[] = [];
  const bytes = Buffer.from(text);
  const scanner: JsonScanner<string> = new JsonScanner(FILTER, {
    onString(tag, from, to) {
      const decoded = decodeJsonString(scanner.raw(8192));
      expect(JSON.parse(bytes.toString('utf8', from, to))).toBe(decoded);
      seen.push(`${tag} ${scanner.path} ${JSON.stringify(decoded).slice(0, 6)}`);
    },
    onScalar: (tag, raw) => void seen.push(`${tag} ${scanner.path} ${raw}`),
    onOpen(tag, isArray) {
      open.push(tag);
      seen.push(`${tag} ${scanner.path} ${isArray ? '[' : '{'}`);
    },
    onClose: (tag, to) => {
      expect([tag, ']}'.includes(String.fromCharCode(bytes[to - 1] ?? 0))]).toEqual([open.pop(), true]);
    },
  });
  for (let at = 0; at < bytes.length; at += chunkBytes) scanner.feed(bytes.subarray(at, at + chunkBytes));
  expect(open).toEqual([]);
  return { status: scanner.status, seen };
}

const leaf = fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.boolean(), fc.constantFrom(null, '"', '\\', '{"a":1}', '][', 'é'));
const { table } = fc.letrec<{ any: unknown; table: Record<string, unknown> }>((tie) => ({
  any: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, fc.array(tie('any'), { maxLength: 3 }), tie('table')),
  table: fc.dictionary(fc.constantFrom('a', 'list', 'b', 'é', 'lists'), tie('any'), { maxKeys: 4, noNullPrototype: true }),
}));

test('reports what JSON.parse finds at the places of the filter, however the text is cut, spaced and escaped', () => {
  fc.assert(
    fc.property(table, fc.integer({ min: 1, max: 50 }), fc.constantFrom(0, 2), fc.boolean(), (value, chunkBytes, space, escaped) => {
      const plain = JSON.stringify(value, null, space);
      const text = escaped ? plain.replaceAll('"a":', '"\\u0061":').replaceAll('"list":', '"l\\u0069st":') : plain;
      expect(scan(text, chunkBytes)).toEqual({ status: 'done', seen: expected(JSON.parse(plain)) });
    }),
    { numRuns: 2000 },
  );
});
