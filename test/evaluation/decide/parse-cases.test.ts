import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { structuralSchema } from '../../../scripts/generate/publish-crd-schema.ts';
import { parseCases } from '../../../src/evaluation/decide/parse-cases.ts';
import { evaluationCaseSchema } from '../../../src/schema/slot/evaluation-case.ts';

const MESSAGES = [{ role: 'user', content: 'What is the capital of France?' }];
const lines = (...cases: readonly unknown[]): string => cases.map((each) => JSON.stringify(each)).join('\n');
const chat = (expectations: unknown, more: object = {}) => ({ request: { messages: MESSAGES, ...more }, expect: expectations });
const mistakeOf = (text: string): string | undefined => parseCases(text).mistake;

describe('parseCases()', () => {
  test('reads one case of each kind, and leaves the keys of requests, schemas and arguments as they are', () => {
    const schema = { type: 'object', properties: { first_name: { type: 'string' } }, required: ['first_name'] };
    const tool = { name: 'get_weather', arguments: { city_name: 'Oslo', maxDays: 3 } };
    const text = lines(
      { ...chat({ contains: 'Paris', matches: '(?i)paris' }, { max_tokens: 5 }), required: true },
      chat({ schema, tool, similar: { to: 'It is Paris', at_least: 0.8 } }),
      { request: { path: '/v1/embeddings', input: 'a' }, expect: { dimension: 384 } },
      { request: { path: '/v1/rerank', query: 'a', documents: ['b', 'c'] }, expect: { best: 1 } },
      { request: { path: '/v1/audio/speech', input: 'Hello' }, expect: { transcript: { reference: 'hello', at_most: 0.1 } } },
      { request: { path: '/v1/audio/transcriptions', file: 'a.wav' }, expect: { transcript: { reference: 'hello', at_most: 0 } } },
      { request: { path: '/v1/images/generations', prompt: 'a fox' }, expect: { image: { width: 512, height: 256 } } },
      { request: { path: '/v1/completions', prompt: 'one two' }, expect: { contains: 'three' } },
    );
    const parsed = parseCases(`\uFEFF${text.replaceAll('\n', '\r\n\r\n')}\n`);
    expect(parsed).toMatchObject({ cases: { length: 8 } });
    expect('cases' in parsed && parsed.cases.slice(0, 2)).toEqual([
      { request: { messages: MESSAGES, max_tokens: 5 }, expect: { contains: 'Paris', matches: '(?i)paris' }, required: true },
      { request: { messages: MESSAGES }, expect: { schema, tool, similar: { to: 'It is Paris', atLeast: 0.8 } } },
    ]);
  });

  test.each([
    ['an empty file', '\n \n', /^There is no case: write one in each line, such as \{"request"/],
    ['text that is no JSON', `${lines(chat({ contains: 'a' }))}\n{"request": }`, /^Line 2: Write a JSON object in one line, such as /],
    ['a list', '[]', /^Line 1: Write a JSON object in one line/],
    ['no expectation', lines({ request: { messages: [] } }), /^Line 1: expect: Add the table "expect": it is required$/],
    ['an empty one', lines(chat({})), /^Line 1: expect: Add an expectation: one of "contains", "matches", "schema", "similar", "tool"$/],
    [
      'a word that is nearly known',
      lines(chat({ contain: 'a' })),
      /^Line 1: expect\.contain: Unknown key "contain"; did you mean "contains"\?/,
    ],
    [
      'the case of a slot in Kubernetes',
      lines(chat({ similar: { to: 'a', atLeast: 1 } })),
      /expect\.similar\.atLeast: Unknown key "atLeast"; did you mean "at_least"\?/,
    ],
    [
      'a number out of range',
      lines(chat({ similar: { to: 'a', at_least: 2 } })),
      /^Line 1: expect\.similar\.at_least: Use at most 1, not 2$/,
    ],
    [
      'an expectation of other answers',
      lines(chat({ dimension: 5 })),
      /^Line 1: expect: Remove "dimension": answers of "\/v1\/chat\/completions" can be compared with "contains"/,
    ],
    [
      'a request without its content',
      lines({ request: { path: '/v1/rerank', query: 'a' }, expect: { best: 0 } }),
      /^Line 1: request: Add "documents", which a request to "\/v1\/rerank" needs/,
    ],
    [
      'an unknown path',
      lines({ request: { path: '/v1/models' }, expect: {} }),
      /^Line 1: request\.path: Use one of "\/v1\/chat\/completions"/,
    ],
    ['a path that objects inherit', lines({ request: { path: 'toString' }, expect: {} }), /request\.path: Use one of/],
    [
      'a recording without a path',
      lines({ request: { path: '/v1/audio/transcriptions', file: ['a.wav'] }, expect: { contains: 'a' } }),
      /^Line 1: request\.file: Write the path of a recording$/,
    ],
    ['a model', lines(chat({ contains: 'a' }, { model: 'b' })), /^Line 1: request: Remove "model": the evaluation sets it$/],
    ['a stream', lines(chat({ contains: 'a' }, { stream: false })), /^Line 1: request: Remove "stream"/],
    [
      'a pattern that is not RE2',
      lines(chat({ matches: '(?=a)' })),
      /^Line 1: expect\.matches: Write a pattern in the syntax of RE2: .*\(\?=/,
    ],
    [
      'a pattern that is too large',
      lines(chat({ matches: '.{900}.{900}' })),
      /^Line 1: expect\.matches: The pattern has \d+ instructions, more than 1000/,
    ],
    [
      'a schema with a typing error',
      lines(chat({ schema: { type: 'object', requierd: [] } })),
      /^Line 1: expect\.schema: Correct the JSON Schema: .*requierd/,
    ],
    [
      'a schema with references',
      lines(chat({ schema: { properties: { a: { $ref: 'https://example.com/a' } } } })),
      /^Line 1: expect\.schema: Remove "\$ref" from the JSON Schema/,
    ],
    ['a schema that waits', lines(chat({ schema: { $async: true } })), /^Line 1: expect\.schema: Remove "\$async"/],
    [
      'a schema with a pattern that is not RE2',
      lines(chat({ schema: { type: 'string', pattern: '(a)\\1' } })),
      /^Line 1: expect\.schema: Correct the JSON Schema: .*RE2/,
    ],
    [
      'a schema that is too large',
      lines(chat({ schema: { title: 'a'.repeat(17_000) } })),
      /^Line 1: expect\.schema: Use at most 16384 bytes as JSON$/,
    ],
    [
      'a schema that is too deep',
      lines(chat({ schema: nested(8) })),
      /^Line 1: expect\.schema: Use at most 16 levels of lists and tables$/,
    ],
    ['too many cases', Array.from({ length: 1001 }, () => '{}').join('\n'), /^There are 1001 cases: use at most 1000$/],
    ['too many bytes', 'x'.repeat(2 ** 20 + 1), /^The cases have more than 1 MiB/],
  ])('refuses %s', (_what, text, message) => {
    expect(mistakeOf(text)).toMatch(message);
  });

  test('refuses a file that is deeper than the stack without failing itself', () => {
    expect(mistakeOf(`{"request": ${'['.repeat(200_000)}${']'.repeat(200_000)}, "expect": {}}`)).toBe(
      'Line 1: Use at most 19 levels of lists and tables',
    );
  });
});

function nested(levels: number): object {
  return levels === 0 ? { type: 'string' } : { properties: { a: nested(levels - 1) } };
}

test('a case has a form that an API server can check', () => {
  const schema = structuralSchema(evaluationCaseSchema);
  expect(schema).toMatchObject({ type: 'object', required: ['request', 'expect'] });
  expect(JSON.stringify(schema)).not.toMatch(/"(?:\$ref|anyOf|oneOf)":/);
});

test('the cases in the documentation are valid, and have every expectation', () => {
  const page = readFileSync('docs/evaluate.md', 'utf8');
  const [, examples = ''] = /^```jsonl\n(.*?)^```/ms.exec(page) ?? [];
  const parsed = parseCases(examples);
  expect(parsed.mistake).toBeUndefined();
  const keys = Object.keys(evaluationCaseSchema.shape.expect.shape);
  expect('cases' in parsed && [...new Set(parsed.cases.flatMap((each) => Object.keys(each.expect)))].toSorted()).toEqual(keys.toSorted());
  for (const key of keys) expect(page).toMatch(new RegExp(`^\\| \`${key}\` +\\|`, 'm'));
});
