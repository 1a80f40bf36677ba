import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { VERBS } from '../../src/cli/verb-table.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** A command in quotes, as messages and pages name it; not a sentence that begins with the name of the program. */
const COMMAND = /["`]svcctl (?!can |cannot )([a-z-]+)(?: ([a-z-]+))?/g;

function filesIn(directory: string, ending: string): readonly string[] {
  const entries = readdirSync(path.join(ROOT, directory), { recursive: true, encoding: 'utf8' });
  return entries.filter((entry) => entry.endsWith(ending)).map((entry) => path.join(directory, entry));
}

test('every command that a message or a page names exists', () => {
  const verbs = new Map(VERBS.map((entry) => [entry.name, 'load' in entry ? undefined : entry.verbs.map(({ name }) => name)]));
  const files = [...filesIn('src', '.ts'), ...filesIn('docs', '.md').filter((file) => !file.includes('decisions')), 'README.md'];
  const unknown = files.flatMap((file) =>
    [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(COMMAND)]
      .filter(([, verb = '', second = '']) => !verbs.has(verb) || verbs.get(verb)?.includes(second) === false)
      .map(([command]) => `${file}: ${command}`),
  );
  expect(unknown).toEqual([]);
});
