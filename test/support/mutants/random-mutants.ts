/** Random faults in a source file: one operator, constant or statement is replaced, wherever that is possible. Types, comments and texts stay. */
import { stripTypeScriptTypes } from 'node:module';
import type { Mutant } from './mutant.ts';

interface Change {
  readonly at: number;
  readonly length: number;
  readonly replace: string;
}

type Operator = readonly [pattern: RegExp, replace: (found: string) => string];

const swap = (pairs: Readonly<Record<string, string>>) => (found: string) => pairs[found] ?? found;

const OPERATORS: readonly Operator[] = [
  [/ (?:===|!==) /g, swap({ ' === ': ' !== ', ' !== ': ' === ' })],
  [/ (?:&&|\|\|) /g, swap({ ' && ': ' || ', ' || ': ' && ' })],
  [/ (?:<|<=|>|>=) /g, swap({ ' < ': ' <= ', ' <= ': ' < ', ' > ': ' >= ', ' >= ': ' > ' })],
  [/ [-+] /g, swap({ ' + ': ' - ', ' - ': ' + ' })],
  [/\b(?:true|false)\b/g, swap({ true: 'false', false: 'true' })],
  [/ \?\? /g, () => ' && '],
  [/!(?=[a-zA-Z(])/g, () => ''],
  [/(?<![\w.])\d[\d_]*(?![\w.])/g, (found) => (found === '0' ? '1' : '0')],
  [/\bMath\.(?:min|max)\b/g, swap({ 'Math.min': 'Math.max', 'Math.max': 'Math.min' })],
  [/\.(?:some|every)\(/g, swap({ '.some(': '.every(', '.every(': '.some(' })],
  // What somebody in a hurry gets wrong: the other end, the wrong order, not waiting, not tidying up.
  [/\.at\((?:-1|0)\)/g, swap({ '.at(-1)': '.at(0)', '.at(0)': '.at(-1)' })],
  [/\.slice\(-/g, () => '.slice(0, '],
  [/\.(?:findLast|find)\(/g, swap({ '.find(': '.findLast(', '.findLast(': '.find(' })],
  [/\.(?:push|unshift)\(/g, swap({ '.push(': '.unshift(', '.unshift(': '.push(' })],
  [/(?<=\n) +await (?=[a-z][^\n]*;\n)/g, (found) => found.replace('await ', 'void ')],
  [/(?<=\n) +(?:clearTimeout|clearInterval|[\w.]+\.(?:abort|delete|clear|close|release))\([^\n]*\);\n/g, () => ''],
  // An early return, or a part of a list, that somebody forgot.
  [/(?<=\n) +if \([^\n]*\) (?:return|continue)[^\n]*;\n/g, () => ''],
  [/(?<=\n) +\.\.\.[^\n]*,\n/g, () => ''],
];

/** Every mutant that these operators make of a file. */
export function listRandomMutants(file: string, source: string): readonly Mutant[] {
  const code = maskTexts(stripTypeScriptTypes(source, { mode: 'strip' }));
  return OPERATORS.flatMap(([pattern, replace]) =>
    [...code.matchAll(pattern)].map((match): Change => ({ at: match.index, length: match[0].length, replace: replace(match[0]) })),
  )
    .filter(({ at, length, replace }) => replace !== source.slice(at, at + length))
    .filter((change) => parses(source, change))
    .map((change) => mutantOf(file, source, change));
}

/** Blanks out comments and the contents of texts, so that positions stay. */
function maskTexts(code: string): string {
  return code.replace(/\/\*[^]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, (found) =>
    found.replace(/[^\n]/g, '.'),
  );
}

/** Some replacements need parentheses that are not there. */
function parses(source: string, { at, length, replace }: Change): boolean {
  try {
    stripTypeScriptTypes(`${source.slice(0, at)}${replace}${source.slice(at + length)}`, { mode: 'strip' });
    return true;
  } catch {
    return false;
  }
}

/** Takes in as much of the surroundings as it takes to name the place. */
function mutantOf(file: string, source: string, { at, length, replace }: Change): Mutant {
  let from = at;
  let to = at + length;
  while (source.indexOf(source.slice(from, to)) !== from || source.indexOf(source.slice(from, to), from + 1) >= 0) {
    from = Math.max(0, from - 8);
    to = Math.min(source.length, to + 8);
  }
  const line = source.slice(0, at).split('\n').length + (source[at] === '\n' ? 1 : 0);
  const before = source.slice(at, at + length).trim();
  return {
    fault: `${file}:${line}: "${before}" ${replace.trim() === '' ? 'removed' : `replaced by "${replace.trim()}"`}`,
    file,
    find: source.slice(from, to),
    replace: `${source.slice(from, at)}${replace}${source.slice(at + length, to)}`,
  };
}
