/**
 * Prints the files and lines that one has to read to follow a request: all files of `src` that the given ones import, directly or not.
 * First what runs (value imports), then what only types come from.
 *
 *   node scripts/request-closure.ts [--at REVISION] [--list] src/gateway/gateway.ts …
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

interface Import {
  readonly file: string;
  readonly isType: boolean;
}

const IMPORT = /^(?:import|export)\s+(type\s)?([^;'"]*?)\s*(?:from\s+)?['"](\.[^'"]+)['"]/gm;

function main(): void {
  const { values, positionals } = parseArgs({ options: { at: { type: 'string' }, list: { type: 'boolean' } }, allowPositionals: true });
  const read = (file: string): string =>
    values.at === undefined
      ? readFileSync(file, 'utf8')
      : execFileSync('git', ['show', `${values.at}:${file}`], { encoding: 'utf8', maxBuffer: 2 ** 26 });
  const texts = new Map<string, string>();
  const running = closureOf(positionals, texts, read, false);
  const all = closureOf(positionals, texts, read, true);
  const types = new Set([...all].filter((file) => !running.has(file)));
  for (const [name, files] of Object.entries({ 'value imports': running, 'type imports only': types, all })) {
    const lines = (file: string): number => (texts.get(file) ?? '').split('\n').length - 1;
    const sum = [...files].reduce((total, file) => total + lines(file), 0);
    process.stdout.write(`${name}: ${files.size} files, ${sum} lines\n`);
    if (values.list === true && files !== all)
      for (const file of files) process.stdout.write(`  ${String(lines(file)).padStart(4)} ${file}\n`);
  }
}

function closureOf(
  starts: readonly string[],
  texts: Map<string, string>,
  read: (file: string) => string,
  withTypes: boolean,
): ReadonlySet<string> {
  const found = new Set(starts);
  // A set that grows is iterated to its new end.
  for (const file of found) {
    const text = texts.get(file) ?? read(file);
    texts.set(file, text);
    for (const { file: imported, isType } of importsOf(file, text)) if (withTypes || !isType) found.add(imported);
  }
  return found;
}

function importsOf(file: string, text: string): readonly Import[] {
  return [...text.matchAll(IMPORT)].map(([, type, names = '', specifier = '']) => ({
    file: path.posix.join(path.posix.dirname(file), specifier),
    isType: type !== undefined || isOnlyTypes(names),
  }));
}

/** `{ type One, type Two }` */
function isOnlyTypes(names: string): boolean {
  const listed = /^\{(.*)\}$/s.exec(names.trim())?.[1]?.split(',') ?? [];
  const used = listed.map((name) => name.trim()).filter((name) => name !== '');
  return used.length > 0 && used.every((name) => name.startsWith('type '));
}

main();
