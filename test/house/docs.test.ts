/** Commands, links, files and settings that the documentation mentions exist; decisions are short, dated and listed in their index. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { SettingsSchema } from '../../src/schema/settings/settings.ts';
import { ROOT } from './lint-fixtures.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const markdownIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => join(folder, entry.name));
const DECISIONS = 'docs/decisions';
const DECISIONS_INDEX = join(DECISIONS, 'README.md');
const decisions = markdownIn(DECISIONS)
  .filter((path) => path !== DECISIONS_INDEX)
  .toSorted();
const pages = [
  ...markdownIn('.'),
  ...markdownIn('docs'),
  ...markdownIn('docs/cluster'),
  DECISIONS_INDEX,
  ...decisions,
  'toolboxes/README.md',
];

/** Pages may leave out the first folders of a source file. */
const sources = globSync('{bench,installer,scripts,src,test,toolboxes}/**/*.{ts,mjs,sh}', {
  cwd: ROOT,
  exclude: (path) => path.includes('node_modules'),
});

const Dependencies = z.record(z.string(), z.string()).default({});
const Package = z.object({
  scripts: Dependencies,
  dependencies: Dependencies,
  devDependencies: Dependencies,
  optionalDependencies: Dependencies,
});
const { scripts, ...dependencies } = Package.parse(JSON.parse(read('package.json')));

/** Names that `npm run test:long` lists. */
const longTests = [...read('scripts/test-long.sh').matchAll(/^([a-z-]+) {2,}\S/gm)].map(([, name]) => name);

/** Of `svcctl`; the service ignores them. */
const CLI_SETTINGS = ['SVC_TOKEN'];
/** Of the installer; the service ignores them. */
const INSTALLER_SETTINGS = ['SVC_ADMIN_USER', 'SVC_ADMIN_PASSWORD', 'SVC_HOSTNAME', 'SVC_TLS_EMAIL', 'SVC_ACME_CA', 'SVC_DNS_CHALLENGE'];
/** Settings of the tests themselves, which the service does not have. */
const TEST_SETTINGS = new Set([
  'SVC_TEST_REQUIRE',
  'SVC_TEST_BROWSER',
  'SVC_TEST_CADDY',
  'SVC_TEST_ESPEAK',
  'SVC_TEST_FIREFOX',
  'SVC_TEST_SYSTEMD',
  'SVC_TEST_HELM',
  'SVC_TEST_CLUSTER',
  'SVC_TEST_SCREENSHOTS',
  'SVC_BENCH_SLOTS',
  'SVC_BENCH_MINUTES',
  'SVC_RECORD_SEEDS',
  'SVC_SEEDS',
  'SVC_TEST_SEED',
  'SVC_TEST_SCALE',
]);

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

  test('mentions only long tests that exist', () => {
    const named = [...text.matchAll(/\btest:long -- ([a-z-]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !longTests.includes(name))).toEqual([]);
  });

  test('has no broken link', () => {
    const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map(
      ([, first, second]) => first ?? second ?? '',
    );
    const broken = links.filter((link) => !/^(?:https?|mailto):/.test(link)).filter((link) => !resolves(page, link));
    expect(broken).toEqual([]);
  });

  test('mentions only files and folders that exist', () => {
    const named = [...text.matchAll(/`([\w./-]+\.(?:ts|mjs|sh)|(?:bench|docs|helm|manifests|scripts|src|test|toolboxes)\/[\w./-]+)`/g)];
    const missing = named
      .map(([, path = '']) => path)
      .filter((path) => !existsSync(join(ROOT, path)) && !sources.some((source) => source.endsWith(`/${path}`)));
    expect(missing).toEqual([]);
  });

  test('mentions only settings that exist', () => {
    const known = new Set([...Object.keys(SettingsSchema.shape), ...TEST_SETTINGS, ...CLI_SETTINGS, ...INSTALLER_SETTINGS]);
    const named = new Set([...text.matchAll(/\bSVC_[A-Z_]+[A-Z]\b/g)].map(([name]) => name));
    expect([...named].filter((name) => !known.has(name))).toEqual([]);
  });
});

test('the messages that the troubleshooting page quotes are those of the sources', () => {
  const text = sources.map(read).join('\n');
  const rows = read('docs/troubleshooting.md').matchAll(/^\| `([^`]+)`/gm);
  // Values in a message, and numbers, are not part of the source text.
  const fragments = [...rows].flatMap(([, message = '']) => message.split(/…|[\d.]+/)).filter((fragment) => fragment.trim().length > 5);
  expect(fragments.length).toBeGreaterThan(10);
  expect(fragments.filter((fragment) => !text.includes(fragment))).toEqual([]);
});

const [current = '', former = ''] = read(DECISIONS_INDEX).split('\n## Former numbers\n');

test('each number from 1 is that of one decision, or was folded into another page', () => {
  const numbers = decisions.flatMap((path) => {
    const { first, last } = numbersOf(path);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  const rows = [...former.matchAll(/^\| ((?:\d{4}(?:, )?)+) *\| \[/gm)];
  const folded = rows.flatMap(([, cell = '']) => cell.split(', ').map(Number));
  expect(folded.length).toBeGreaterThan(0);
  const all = [...numbers, ...folded].toSorted((one, other) => one - other);
  expect(all).toEqual(all.map((_, index) => index + 1));
});

test('the index of decisions links to each of them once', () => {
  const links = [...current.matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(([, link = '']) => join(DECISIONS, link));
  expect(links.toSorted()).toEqual(decisions);
});

describe.each(decisions)('%s', (path) => {
  const text = read(path);

  test('has its number in its title, and the three parts of a decision', () => {
    const [title, ...parts] = [...text.matchAll(/^##? (.*)$/gm)].map(([, heading]) => heading);
    const { first, last } = numbersOf(path);
    const numbers = [...new Set([first, last])].map((number) => String(number).padStart(4, '0')).join('–');
    expect(title).toMatch(new RegExp(`^${numbers} `));
    expect(parts).toEqual(['Context', 'Decision', 'Consequences']);
  });

  test('fits on a page', () => {
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
  });

  test('has its status and its date under the title', () => {
    expect(text.split('\n')[2]).toMatch(/^Status: (?:accepted|superseded by \[\d{4}\]\(.+\)) · Date: \d{4}-\d{2}-\d{2}$/);
  });
});

test('the table of the page about speed has the figures of the saved results that it names', () => {
  const Saved = z.object({
    measurements: z.record(z.string(), z.object({ goals: z.array(z.object({ what: z.string(), figure: z.string() })) })),
  });
  const [head = [], , ...rows] = [...read('docs/speed.md').matchAll(/^\|(.*)\|$/gm)].map(([, row = '']) =>
    row.split('|').map((cell) => cell.trim()),
  );
  const results = head.slice(1).map((name) => Saved.parse(JSON.parse(read(`bench/results/${name}.json`))).measurements['gateway']?.goals);
  const figures = (what: string) => results.map((goals) => goals?.find((goal) => goal.what.trim() === what)?.figure);
  expect(results.length).toBe(2);
  expect(rows.length).toBeGreaterThan(5);
  expect(rows).toEqual(rows.map(([what = '']) => [what, ...figures(what)]));
});

test('package-lock.json matches package.json', () => {
  const Lock = z.object({ packages: z.object({ '': Package.omit({ scripts: true }) }) });
  expect(Lock.parse(JSON.parse(read('package-lock.json'))).packages['']).toEqual(dependencies);
});

/** The number in a file name; a page may replace several: `0009-0015-tools-and-libraries.md`. */
function numbersOf(path: string): { readonly first: number; readonly last: number } {
  const [, first, last = first] = /^(\d{4})(?:-(\d{4}))?-[a-z0-9-]+\.md$/.exec(basename(path)) ?? [];
  return { first: Number(first), last: Number(last) };
}

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
