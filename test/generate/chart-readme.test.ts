import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { chartReadme, chartValues } from '../../scripts/generate/publish-chart-readme.ts';
import { helmValuesSchema } from '../../scripts/generate/publish-helm-schema.ts';

const VALUES = readFileSync(join(import.meta.dirname, '../../helm/svc/values.yaml'), 'utf8');

describe('The README of the chart', () => {
  test('describes each value', () => {
    const values = chartValues(VALUES, helmValuesSchema());
    expect(values.length).toBeGreaterThan(70);
    expect(values.filter(({ description }) => !/^[^a-z].*\.$|^auto:|https:\S+$/.test(description))).toEqual([]);
    expect(values.filter(({ type }) => type === '')).toEqual([]);
    expect(new Set(values.map(({ key }) => key)).size).toBe(values.length);
  });

  test('has a row for each value', () => {
    const readme = chartReadme(VALUES, helmValuesSchema());
    for (const { key } of chartValues(VALUES, helmValuesSchema())) expect(readme).toContain(`\n| \`${key}\` |`);
  });
});

const closed = (properties: object) => ({ type: 'object', properties, additionalProperties: false });

describe('chartValues()', () => {
  test.each([
    [
      '# Number of gateways.\nreplicas: 2\n',
      closed({ replicas: { type: 'integer' } }),
      ['replicas', 'integer', '2', 'Number of gateways.'],
    ],
    ['# One\n# two.\n#   - example\n\n# About it.\na: []\n', closed({ a: { type: 'array' } }), ['a', 'list', '[]', 'About it.']],
    [
      '# Text.\n#   - example\na: []\n',
      closed({ a: { type: 'array', items: { type: 'string' } } }),
      ['a', 'list of strings', '[]', 'Text.'],
    ],
    ['t:\n  # Inner.\n  a: x\n', closed({ t: closed({ a: { enum: ['', 'x'] } }) }), ['t.a', '`""`, `x`', '"x"', 'Inner.']],
    ['# Labels.\nlabels: {a: b}\n', closed({ labels: { type: 'object' } }), ['labels', 'table', '{"a":"b"}', 'Labels.']],
    [
      'first: 1\n# Open.\nt: {}\n',
      closed({ first: { type: 'integer' }, t: closed({ a: {} }) }),
      ['first', 'integer', '1', ''],
      ['t', 'table', '{}', 'Open.'],
    ],
    [
      '# Group.\nt:\n  # A.\n  a: null\n',
      closed({ t: { anyOf: [closed({ a: { anyOf: [{ type: 'integer' }, { type: 'null' }] } }), { type: 'null' }] } }),
      ['t', 'table', '', 'Group.'],
      ['t.a', 'integer or null', 'null', 'A.'],
    ],
  ])('reads %j', (text, schema, ...expected) => {
    const rows = chartValues(text, schema).map(({ key, type, fallback, description }) => [key, type, fallback, description]);
    expect(rows).toEqual(expected);
  });
});
