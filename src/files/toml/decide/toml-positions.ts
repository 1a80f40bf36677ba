/** Finds the position of each key in a TOML text. Pure. */
import { getStaticTOMLValue, parseTOML, type AST } from 'toml-eslint-parser';

/** Both count from 1; columns are UTF-16 units, as in editors. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

type Path = readonly (string | number)[];

/** A longer text is not parsed again for positions, and its problems are reported in line 1. Slots have a few hundred bytes. */
const LONGEST_TEXT = 256 * 1024;

/** Returns a function that finds the position of a path, or of the nearest parent that the text contains; line 1, column 1 if there is none. */
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

/** Returns the syntax tree; undefined if this parser, which is not the one for values, refuses the text. */
export function parseTomlTree(text: string): AST.TOMLProgram | undefined {
  try {
    // Without a final line break, the parser gives a last value of one digit an empty range.
    return parseTOML(`${text}\n`, { tomlVersion: '1.1' });
  } catch {
    return undefined;
  }
}

/** Returns the position of an offset into a text. */
export function positionOf(text: string, offset: number): TextPosition {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < lineStart; at = text.indexOf('\n', at + 1)) line++;
  return { line, column: offset - lineStart + 1 };
}

function indexTable(positions: Map<string, TextPosition>, table: AST.TOMLTable): void {
  const path = table.resolvedKey;
  // The path of an entry of an array of tables ends with its index, after the header's last key.
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
