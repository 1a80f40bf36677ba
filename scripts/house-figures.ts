/**
 * Figures about the shape of src/, and random samples of what people read there, so that both can be compared over time:
 *
 *     node scripts/house-figures.ts [--repo DIR]          lines, files, files under 30 lines, large folders, imports between rooms
 *     node scripts/house-figures.ts --sample SEED         40 comments, 40 messages, 40 texts of the dashboard, 20 commit subjects
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { repo: { type: 'string', default: '.' }, sample: { type: 'string' } } });
const git = (...args: string[]) => execFileSync('git', args, { cwd: values.repo, encoding: 'utf8' }).split('\n').filter(Boolean);
const read = (path: string) => readFileSync(join(values.repo, path), 'utf8');
const linesOf = (text: string) => text.split('\n').length - 1;

function printFigures(): void {
  const files = new Map(git('ls-files', 'src').map((path) => [path, read(path)]));
  const folders = Map.groupBy(files.keys(), dirname);
  const sizes = [...files.values()].map(linesOf);
  console.log(`lines                ${sizes.reduce((sum, size) => sum + size, 0)}`);
  console.log(`files                ${files.size}`);
  console.log(`files under 30 lines ${sizes.filter((size) => size < 30).length}`);
  console.log(`folders over 25      ${[...folders].filter(([, paths]) => paths.length > 25).length}`);
  console.log(`imports across rooms ${[...files].flatMap(([path, text]) => importsAcross(path, text)).length}`);
}

/** Imports of another first-level folder of src/; `schema/` and `platform/` are for all. */
function importsAcross(path: string, text: string): readonly string[] {
  const room = (file: string) => file.split('/')[1];
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)]
    .map(([, specifier = '']) => normalize(join(dirname(path), specifier)))
    .filter((file) => room(file) !== room(path) && !['schema', 'platform'].includes(room(file) ?? ''));
}

/** Mulberry32: the same seed draws the same sample. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function printSamples(seed: number): void {
  const random = randomFrom(seed);
  const draw = (title: string, all: readonly string[], count: number) => {
    const rest = [...all];
    console.log(`\n${title} (${all.length})`);
    for (let left = Math.min(count, rest.length); left > 0; left -= 1)
      console.log(`  ${rest.splice(Math.floor(random() * rest.length), 1).join('')}`);
  };
  const sources = git('ls-files', 'src/*.ts');
  const found = (paths: readonly string[], pattern: RegExp) =>
    paths.flatMap((path) =>
      [...read(path).matchAll(pattern)].map(([, text = '']) => `${path}: ${text.replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim()}`),
    );
  draw('Comments', found(sources, /(?:\/\*\*?([^]*?)\*\/|(?<=^\s*)\/\/ ?(.*)$)/gm), 40);
  draw('Messages', found(sources, /(?:message: |fail\(\s*'\w+',\s*'\w+',\s*|Error\()([`'"][^\n]{20,})/g), 40);
  draw('Texts of the dashboard', found(git('ls-files', 'dashboard/src/*texts*.ts'), /(?::|=>)\s*([`'"][^\n]{3,})/g), 40);
  draw('Commit subjects', git('log', '--no-merges', '--format=%s', '-200'), 20);
}

if (values.sample === undefined) printFigures();
else printSamples(Number(values.sample));
