/**
 * What the documents claim: every feature has a test and a page, nothing is announced that does not exist, and every route, setting, verb and metric has a
 * page. Pages are the files of `docs/`, generated reference included; decisions do not count.
 */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseFeatures } from '../../scripts/generate/publish-features.ts';
import { publishedDocument } from '../../scripts/generate/publish-http.ts';
import { METRICS } from '../../src/api/metrics/metric-table.ts';
import { VERBS } from '../../src/cli/verb-table.ts';
import { ROOT } from './lint-fixtures.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGES = globSync('docs/{*,cluster/*,reference/*}.md', { cwd: ROOT }).toSorted();
/** Decisions describe their own day. */
const DOCUMENTS = [...globSync('{*,toolboxes/*,helm/svc/*}.md', { cwd: ROOT }), ...PAGES].toSorted();
const docs = PAGES.map(read).join('\n');

/** Names that no text contains as a whole word. */
function unnamed(names: Iterable<string>, text: string): readonly string[] {
  const escaped = (name: string): string => name.replaceAll(/[{}/.]/g, String.raw`\$&`);
  return [...new Set(names)].filter((name) => !new RegExp(String.raw`(?<![\w{}/])${escaped(name)}(?![\w{}/])`).test(text));
}

describe('docs/features.toml', () => {
  const { features } = parseFeatures(read('docs/features.toml'));

  test('names each feature once', () => {
    expect(new Set(features.map(({ id }) => id)).size).toBe(features.length);
    expect(features.length).toBeGreaterThan(20);
  });

  test.each(features.map(({ id, page, test: proof }) => [id, page, proof] as const))(
    '%s has a page, and a test that exists',
    (_id, page, { file, name }) => {
      expect([page, existsSync(join(ROOT, page))]).toEqual([page, true]);
      expect([file, existsSync(join(ROOT, file))]).toEqual([file, true]);
      expect(namesTest(read(file), name)).toBe(true);
    },
  );

  test('a test that is only mentioned in a comment does not count', () => {
    expect(namesTest("test('it works', () => {", 'it works')).toBe(true);
    expect(namesTest("test.each([1])(\n  'it works',", 'it works')).toBe(true);
    expect(namesTest('// it works', 'it works')).toBe(false);
    expect(namesTest("test('it works twice', () => {", 'it works')).toBe(false);
  });

  test('a fact without a source, an unknown product and a feature without peers are refused', () => {
    const peer = '[peers.a]\nname = "A"\nread = "2026-08"\n[peers.a.sources]\nhome = "https://a.example"\n';
    const feature = (more: string): string =>
      `absent = []\n${peer}[[features]]\nid = "x"\npage = "README.md"\ntest = { file = "a.test.ts", name = "x" }\n${more}\n`;
    expect(parseFeatures(feature('name = "X"\npeers = { a = ["yes", "home"] }')).features).toHaveLength(1);
    for (const wrong of ['name = "X"', 'name = "X"\npeers = { a = ["yes", "away"] }', 'from = [["b", "there", "here"]]'])
      expect(() => parseFeatures(feature(wrong))).toThrow();
  });
});

/** The name is the whole text of a quoted string. */
function namesTest(source: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`));
}

/** What announces something that does not exist. */
const PROMISE = /\b(?:not yet|planned|not implemented|coming soon|will be (?:added|supported)|TODO|FIXME)\b/i;
/** Not on generated pages, which describe states of slots in this way. */
const NOT_YET = /\b(?:no|not|never|nobody|nothing|none)\b[^.|:;]{0,60}\byet\b/i;

/** Phrases that only look like announcements, each with the reason. */
const NO_PROMISES: Readonly<Record<string, string>> = {
  'is planned again': 'The planner plans a slot',
  'planned 12 of 588 worlds': 'What planners did',
  'not admitted yet': 'Output of "svcctl explain" for a slot that waits for memory',
  'has looked at the slot yet': 'A slot that no gateway has seen',
  'no server answers yet': 'Requests that wait for a slot that starts',
  'not requested yet': 'A slot that loads on demand',
  'it cannot be, or not yet': 'A repair that is delayed',
  'if they are not there yet': 'A step for contributors',
  'did not watch ConfigMaps of models yet': 'An earlier version in a table of measurements',
};

const promisesIn = (text: string, patterns: readonly RegExp[] = [PROMISE, NOT_YET]): readonly string[] =>
  text.split('\n').filter((line) => {
    const rest = Object.keys(NO_PROMISES).reduce((shorter, phrase) => shorter.replaceAll(phrase, ''), line);
    return patterns.some((pattern) => pattern.test(rest));
  });

describe('documents announce nothing', () => {
  test.each(DOCUMENTS)('%s', (path) => {
    expect(promisesIn(read(path), path.startsWith('docs/reference/') ? [PROMISE] : undefined)).toEqual([]);
  });

  test.each([
    'Authentication is not implemented.',
    'Authentication is not there yet.',
    'In a cluster not yet.',
    'The provider is [planned](SCOPE.md).',
    'TODO: write this',
    'Coming soon: images',
    'Nothing on this page has been run on an NPU yet.',
  ])('"%s" would be found', (line) => {
    expect(promisesIn(line)).toHaveLength(1);
  });

  test('each phrase that is allowed still occurs', () => {
    const text = DOCUMENTS.map(read).join('\n');
    expect(Object.keys(NO_PROMISES).filter((phrase) => !text.includes(phrase))).toEqual([]);
  });
});

/** Names that look like settings, each with what it is. */
const NO_SETTINGS: Readonly<Record<string, string>> = {
  SVC_MODEL_PIN: 'Set by the gateway in the pods of slots, for the program that fetches their models',
};

const ROUTES = Object.entries(publishedDocument().paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
);

/** Routes in code that the service does not have. A last part of a documented path may be a value: `PATCH /api/slots/primary`. */
function unknownRoutes(text: string): readonly string[] {
  const known = ROUTES.map((route) => new RegExp(`^${route.replaceAll(/\{[^}]+\}/g, '[^ ]+')}$`));
  const named = [...text.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s?]+)[^`]*`/g)].map(([, route = '']) => route);
  return named.filter((route) => !known.some((pattern) => pattern.test(route)));
}

describe('the pages name', () => {
  test('every route, with its method, on the page of routes', () => {
    expect(ROUTES.length).toBeGreaterThan(60);
    expect(unnamed(ROUTES, read('docs/reference/http.md'))).toEqual([]);
    expect(unnamed(['GET /api/slots/{name}/absent', 'GET /api'], read('docs/reference/http.md'))).toHaveLength(2);
  });

  test.each(DOCUMENTS)('no route that does not exist: %s', (path) => {
    expect(unknownRoutes(read(path))).toEqual([]);
    expect(unknownRoutes('`GET /v1/modules`, `PATCH /api/slots/primary`, `GET /api/events?slot=a`')).toEqual(['GET /v1/modules']);
  });

  test('every setting that the program or the installer reads', () => {
    const settings = globSync('{src,installer}/**/*.{ts,mjs,sh,service,container}', { cwd: ROOT }).flatMap((path) =>
      [...read(path).matchAll(/\bSVC(?:CTL)?_[A-Z_]+[A-Z]\b/g)].map(([name]) => name),
    );
    expect(settings).toContain('SVC_LISTEN');
    expect(unnamed(settings, docs).filter((name) => !(name in NO_SETTINGS))).toEqual([]);
    expect(unnamed(['SVC_LISTE'], docs)).toEqual(['SVC_LISTE']);
  });

  test('every verb of svcctl', () => {
    const verbs = VERBS.flatMap((entry) => ('verbs' in entry ? entry.verbs.map(({ name }) => `${entry.name} ${name}`) : [entry.name]));
    expect(verbs).toContain('slot load');
    expect(
      unnamed(
        verbs.map((verb) => `svcctl ${verb}`),
        docs,
      ),
    ).toEqual([]);
  });

  test('every metric', () => {
    expect(unnamed(Object.keys(METRICS), docs)).toEqual([]);
  });
});

test('the README has the two commands that set everything up, both pictures, and less than 200 lines', () => {
  const text = read('README.md');
  expect(text).toMatch(/^npm start\b.*\n^npm test\b/m);
  expect(text).toMatch(/first-run\.svg.*dashboard\.webp/s);
  expect(text.split('\n').length).toBeLessThan(200);
});

test('each picture is shown by a page, and small', () => {
  const pictures = globSync('docs/images/*.webp', { cwd: ROOT });
  expect(pictures.length).toBeGreaterThan(0);
  const shown = read('README.md') + read('docs/dashboard.md');
  for (const path of pictures) {
    expect([path, shown.includes(path.replace('docs/', ''))]).toEqual([path, true]);
    expect([path, statSync(join(ROOT, path)).size <= 60_000]).toEqual([path, true]);
  }
});
