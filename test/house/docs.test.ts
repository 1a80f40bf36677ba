/** Commands, links and settings that the documentation mentions exist; decisions are numbered without a gap. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { SettingsSchema } from '../../src/schema/settings.ts';
import { ROOT } from './lint-fixtures.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const markdownIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => join(folder, entry.name));
const decisions = markdownIn('docs/decisions').toSorted();
const pages = [...markdownIn('.'), ...markdownIn('docs'), ...decisions];

const Dependencies = z.record(z.string(), z.string()).default({});
const Package = z.object({
  scripts: Dependencies,
  dependencies: Dependencies,
  devDependencies: Dependencies,
  optionalDependencies: Dependencies,
});
const { scripts, ...dependencies } = Package.parse(JSON.parse(read('package.json')));

/** Settings of the tests themselves, which the service does not have. */
const TEST_SETTINGS = new Set(['SVC_TEST_REQUIRE', 'SVC_TEST_HELM', 'SVC_TEST_CLUSTER', 'SVC_BENCH_SLOTS']);

test('there is a page for each question a newcomer has', () => {
  expect(pages).toEqual(
    expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'SCOPE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']),
  );
});

describe.each(pages)('%s', (page) => {
  const text = read(page);

  test('mentions only npm scripts of package.json', () => {
    const named = [...text.matchAll(/\bnpm (?:run (?:--silent )?([a-z:-]+)|(start|test)\b)/g)].map(([, run, short]) => run ?? short ?? '');
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  test('has no broken link', () => {
    const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map(
      ([, first, second]) => first ?? second ?? '',
    );
    const broken = links.filter((link) => !/^(?:https?|mailto):/.test(link)).filter((link) => !resolves(page, link));
    expect(broken).toEqual([]);
  });

  test('mentions only settings that exist', () => {
    const known = new Set([...Object.keys(SettingsSchema.shape), ...TEST_SETTINGS]);
    const named = new Set([...text.matchAll(/\bSVC_[A-Z_]+[A-Z]\b/g)].map(([name]) => name));
    expect([...named].filter((name) => !known.has(name))).toEqual([]);
  });
});

test('decisions are numbered from 1 without a gap', () => {
  const numbers = decisions.map((path) => Number(/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1]));
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  expect(numbers.length).toBeGreaterThan(0);
});

test.each(decisions)('%s has its number in its title, and the three parts of a decision', (path) => {
  const headings = [...read(path).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading);
  const number = /(\d{4})-/.exec(relative('docs/decisions', path))?.[1];
  expect(headings[0]).toMatch(new RegExp(`^${number} `));
  expect(headings.slice(1)).toEqual(['Context', 'Decision', 'Consequences']);
});

test('package-lock.json matches package.json', () => {
  const Lock = z.object({ packages: z.object({ '': Package.omit({ scripts: true }) }) });
  expect(Lock.parse(JSON.parse(read('package-lock.json'))).packages['']).toEqual(dependencies);
});

/** Brackets in code are not links. */
function withoutCode(text: string): string {
  return text.replaceAll(/```.*?```/gs, '').replaceAll(/`[^`\n]*`/g, '');
}

function resolves(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, target))) return false;
  return anchor === undefined || anchorsOf(read(target)).has(anchor);
}

function anchorsOf(text: string): ReadonlySet<string> {
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-');
  return new Set([...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => slug(heading)));
}
