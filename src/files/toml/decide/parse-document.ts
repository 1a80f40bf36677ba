/**
 * Parses a TOML text: camelCase keys, no validation, limited depth. An invalid text yields one message with its
 * position. Pure.
 */
import { parse, TomlError } from 'smol-toml';
import { getStaticTOMLValue, parseTOML, type AST } from 'toml-eslint-parser';
import { isTable, pathToSnakeCase, toCamelCase } from '../../../schema/words/key-case.ts';
import type { SpecProblem } from '../../../schema/slot/spec-problem.ts';

type Table = Readonly<Record<string, unknown>>;

/** No schema is deeper; a much deeper document would only cost time and stack. */
const MAX_DEPTH = 32;
const TOO_DEEP = {
  ok: false,
  message: `Tables and lists are nested more than ${MAX_DEPTH} levels deep`,
  position: { line: 1, column: 1 },
} as const;
const BYTE_ORDER_MARK = '\u{FEFF}';

type ParsedDocument =
  | { readonly ok: true; readonly document: Table }
  | { readonly ok: false; readonly message: string; readonly position: TextPosition };

export function parseDocument(text: string): ParsedDocument {
  const plain = withoutByteOrderMark(text);
  try {
    const table = parse(plain, { unsafeKeyBehaviour: 'throw' });
    if (isDeeper(table, MAX_DEPTH)) return TOO_DEEP;
    const document = toCamelCase(table);
    return { ok: true, document: isTable(document) ? document : {} };
  } catch (error) {
    // Any other error means that the parser exceeded the stack.
    return error instanceof TomlError
      ? { ok: false, message: syntaxMessage(error, plain), position: positionInText(plain, error) }
      : TOO_DEEP;
  }
}

/** Some editors write a byte order mark, which has no meaning in UTF-8. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
}

/** Drops the excerpt below the first line. */
function syntaxMessage(error: TomlError, text: string): string {
  const unquoted = UNQUOTED.exec(text.split('\n', error.line)[error.line - 1] ?? '');
  if (unquoted !== null) return quotesMessage(unquoted[1] ?? '', unquoted[2] ?? '');
  const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '');
  if (reason.includes('unsafe property')) return 'The keys "__proto__" and "constructor" are not allowed; use another key';
  return `Invalid TOML: ${reason}`;
}

/** A line such as `backend = cpu`: the most frequent mistake in TOML. */
const UNQUOTED = /^\s*([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z][A-Za-z0-9_./:@-]*)\s*(?:#.*)?$/;

/** Keys whose values may appear in messages. */
const NEVER_SECRET: ReadonlySet<string> = new Set(['provider', 'backend', 'load', 'default', 'swap', 'drift']);

function quotesMessage(key: string, value: string): string {
  const lower = value.toLowerCase();
  if (lower === 'true' || lower === 'false') return `Booleans in TOML are lower case; write ${key} = ${lower}`;
  if (NEVER_SECRET.has(key)) return `The value of "${key}" has no quotes; write ${key} = "${value}"`;
  // The value may be a secret that was written without quotes.
  return `The value of "${key}" has no quotes; write ${key} = "…"`;
}

/** The parser may report a position after the end of the text. */
function positionInText(text: string, error: TomlError): TextPosition {
  const end = positionOf(text, text.length);
  if (error.line > end.line) return end;
  const line = Math.max(1, error.line);
  const length = (text.split('\n', line)[line - 1] ?? '').length;
  return { line, column: Math.min(Math.max(1, error.column), length + 1) };
}

function isDeeper(value: unknown, limit: number): boolean {
  if (limit < 0) return true;
  if (Array.isArray(value)) return value.some((inner) => isDeeper(inner, limit - 1));
  return isTable(value) && Object.values(value).some((inner) => isDeeper(inner, limit - 1));
}

/** Both count from 1; columns are UTF-16 units, as in editors. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

type Path = readonly (string | number)[];

/** Problems in a longer text are reported in line 1. Slots have a few hundred bytes. */
const LONGEST_TEXT = 256 * 1024;

/** The function returns the position of a path or its nearest parent; line 1, column 1 if there is none. */
export function findPositions(text: string): (path: Path) => TextPosition {
  const positions = new Map<string, TextPosition>();
  const ast = text.length > LONGEST_TEXT ? undefined : parseTomlTree(text);
  for (const node of ast?.body[0].body ?? []) {
    if (node.type === 'TOMLKeyValue') indexKeyValue(positions, node, []);
    else indexTable(positions, node);
  }
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const found = positions.get(JSON.stringify(path.slice(0, length)));
      if (found !== undefined) return found;
    }
    return { line: 1, column: 1 };
  };
}

/** Further problems are counted instead of listed, since nobody reads them. */
const MAX_PROBLEMS = 50;

/** Problems of a text with its file and their positions, in the order of the text. `path` in camelCase. */
export function placeProblems(text: string, file: string, problems: readonly SpecProblem[]): readonly SpecProblem[] {
  if (problems.length === 0) return [];
  const positionOf = findPositions(withoutByteOrderMark(text));
  const placed = problems
    .slice(0, MAX_PROBLEMS)
    .map((problem) => ({ ...problem, file, ...positionOf(pathToSnakeCase(problem.path)) }))
    .toSorted((left, right) => left.line - right.line || left.column - right.column);
  const more = problems.length - placed.length;
  return more === 0 ? placed : [...placed, { path: [], message: `There are ${more} more problems`, file, line: 1, column: 1 }];
}

/** Undefined if this parser, which is not the parser for values, refuses the text. */
export function parseTomlTree(text: string): AST.TOMLProgram | undefined {
  try {
    // The parser gives a last value of one digit an empty range if no line break follows.
    return parseTOML(`${text}\n`, { tomlVersion: '1.1' });
  } catch {
    return undefined;
  }
}

export function positionOf(text: string, offset: number): TextPosition {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < lineStart; at = text.indexOf('\n', at + 1)) line++;
  return { line, column: offset - lineStart + 1 };
}

function indexTable(positions: Map<string, TextPosition>, table: AST.TOMLTable): void {
  const path = table.resolvedKey;
  // An entry of an array of tables ends with its index, after the last key of the header.
  const keys = table.key.keys.toReversed();
  let depth = table.kind === 'array' ? path.length - 1 : path.length;
  if (table.kind === 'array') remember(positions, path, table.loc.start);
  for (const key of keys) {
    while (depth > 0 && typeof path[depth - 1] === 'number') depth--;
    remember(positions, path.slice(0, depth), key.loc.start);
    depth--;
  }
  for (const entry of table.body) indexKeyValue(positions, entry, path);
}

function indexKeyValue(positions: Map<string, TextPosition>, entry: AST.TOMLKeyValue, base: Path): void {
  let path = base;
  for (const key of entry.key.keys) {
    path = [...path, getStaticTOMLValue(key)];
    remember(positions, path, key.loc.start);
  }
  indexValue(positions, entry.value, path);
}

function indexValue(positions: Map<string, TextPosition>, value: AST.TOMLContentNode, path: Path): void {
  if (value.type === 'TOMLInlineTable') for (const entry of value.body) indexKeyValue(positions, entry, path);
  if (value.type !== 'TOMLArray') return;
  for (const [index, element] of value.elements.entries()) {
    remember(positions, [...path, index], element.loc.start);
    indexValue(positions, element, [...path, index]);
  }
}

function remember(positions: Map<string, TextPosition>, path: Path, start: AST.Position): void {
  const key = JSON.stringify(path);
  if (!positions.has(key)) positions.set(key, { line: start.line, column: start.column + 1 });
}
