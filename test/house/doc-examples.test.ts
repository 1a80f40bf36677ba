/** Slots, patches, keys and values that the documentation shows exist and are valid. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { ERROR_CODES } from '../../src/schema/words/error-codes.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { ROOT } from './lint-fixtures.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGES = [
  'README.md',
  ...['docs', 'docs/cluster'].flatMap((folder) =>
    readdirSync(join(ROOT, folder)).flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : [])),
  ),
];
const MIGRATION = 'docs/coming-from.md';

/** YAML in fences, and in the here-documents of shell commands. */
function yamlIn(page: string): readonly string[] {
  const fences = [...read(page).matchAll(/^( *)```(yaml|sh)\n(.*?)^ *```/gms)];
  return fences.flatMap(([, indent = '', language, indented = '']) => {
    const text = indented.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
    return language === 'yaml' ? [text] : [...text.matchAll(/<<'?END'?\n(.*?)^END/gms)].map(([, inner = '']) => inner);
  });
}

const slotsIn = (page: string): readonly string[] =>
  yamlIn(page).flatMap((text) =>
    parseAllDocuments(text).flatMap((document) => {
      const data: unknown = document.toJS();
      return isTable(data) && data['kind'] === 'SlotSpec' ? [JSON.stringify(data)] : [];
    }),
  );

const SPEC = z.toJSONSchema(SlotDocument, { io: 'input' });

/** Whether a slot may have a key; keys of maps belong to users. */
function hasKey(schema: unknown, path: readonly string[]): boolean {
  const [head, ...rest] = path;
  if (head === undefined) return true;
  if (!isTable(schema)) return false;
  const properties = isTable(schema['properties']) ? schema['properties'] : {};
  if (head in properties) return hasKey(properties[head], rest);
  return isTable(schema['additionalProperties']) && rest.length === 0;
}

const pathsOf = (data: unknown): readonly (readonly string[])[] =>
  isTable(data) ? Object.entries(data).flatMap(([key, inner]) => pathsOf(inner).map((path) => [key, ...path])) : [[]];

describe.each(PAGES.filter((page) => slotsIn(page).length > 0))('%s', (page) => {
  test('shows slots that are valid', async () => {
    for (const slot of slotsIn(page))
      expect([slot, await svcctl(['validate', '-f', '-'], { input: slot })]).toMatchObject([slot, { code: 0 }]);
  }, 60_000);

  test('shows patches of keys that exist', () => {
    for (const [, kind = '', patch = ''] of read(page).matchAll(/patch ([\w/]+)[^'\n]* --type=merge -p '([^']+)'/g)) {
      // Definitions are objects of the cluster and have no keys of slots.
      if (kind === 'crd') continue;
      for (const [top, ...path] of pathsOf(JSON.parse(patch))) expect([patch, top, hasKey(SPEC, path)]).toEqual([patch, 'spec', true]);
    }
  });
});

test('each product that users may come from has a slot that does the same', () => {
  // The last two share a GPU.
  expect(slotsIn(MIGRATION).map((slot) => /"name":"(\w+)"/.exec(slot)?.[1])).toEqual([
    'assistant',
    'assistant',
    'assistant',
    'assistant',
    'coder',
  ]);
});

describe(MIGRATION, () => {
  /** The last column of the tables says what is here; the first one names what others have. */
  const here = [...read(MIGRATION).matchAll(/^\|.*\|(.*)\|$/gm)].map(([, cell = '']) => cell).join('\n');

  test('names only keys of a slot that exist', () => {
    const keys = [...here.matchAll(/`spec\.([\w.]+)/g)].map(([, key = '']) => key);
    expect(keys.length).toBeGreaterThan(40);
    expect(keys.filter((key) => !hasKey(SPEC, key.split('.')))).toEqual([]);
  });

  test('names only values of the chart that exist', () => {
    const values: unknown = parse(read('helm/svc/values.yaml'));
    const named = [...here.matchAll(/`([\w.]+)` of the chart/g)].map(([, key = '']) => key);
    expect(named.length).toBeGreaterThan(5);
    const has = (key: string): boolean =>
      key.split('.').reduce<unknown>((inner, part) => (isTable(inner) ? inner[part] : undefined), values) !== undefined;
    expect(named.filter((key) => !has(key))).toEqual([]);
  });

  test('names only error codes that exist', () => {
    const named = [...read(MIGRATION).matchAll(/code `([\w.]+)`/g)].map(([, code = '']) => code);
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((code) => !(code in ERROR_CODES))).toEqual([]);
  });
});
