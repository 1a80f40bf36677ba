/** One more definition is one more file: nothing in the sources lists the shipped engines. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { engineReference } from '../../../scripts/generate/publish-reference.ts';
import { ENGINES_DIRECTORY, shippedEngines } from './engine-files.ts';

const SOURCES = path.resolve(import.meta.dirname, '../../../src');

test('no source file names a shipped engine, except the tools that share a name with one', () => {
  const shared = new Set(['llama-server', 'ollama', 'infinity']);
  const names = shippedEngines()
    .map(({ name }) => name)
    .filter((name) => !shared.has(name));
  const named = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(path.join(SOURCES, file), 'utf8').replaceAll(/\/\*\*.*?\*\/|\/\/.*$/gms, '');
      return names.filter((name) => text.includes(`'${name}'`)).map((name) => `${file}: ${name}`);
    });
  expect(named).toEqual([]);
});

test('the reference follows from the files', () => {
  const texts = Object.fromEntries(
    readdirSync(ENGINES_DIRECTORY).map(
      (file) => [path.basename(file, '.toml'), readFileSync(path.join(ENGINES_DIRECTORY, file), 'utf8')] as const,
    ),
  );
  const more = { ...texts, 'one-more': texts['llama-server'] ?? '' };
  const [before, after] = [texts, more].map((each) => engineReference(each).split('\n'));
  const added = (after ?? []).filter((line) => !(before ?? []).includes(line));
  expect(added).toEqual([expect.stringMatching(/^\| \[one-more\]/)]);
});

test('each shipped definition says where its facts come from, and invents no digest', () => {
  for (const { name, about, image = {} } of shippedEngines()) {
    expect({ name, about }).toMatchObject({ about: { source: expect.stringMatching(/./), version: expect.stringMatching(/./) } });
    for (const reference of Object.values(image)) expect(reference).not.toMatch(/sha256:(0+|x+|…)/);
  }
});
