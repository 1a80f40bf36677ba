/** The parts of a TOML text that an edit touches: every key with its value, every table header, each with its path and range. */
import type { AST } from 'toml-eslint-parser';
import { keyName } from './toml-positions.ts';

type Path = readonly (string | number)[];

export interface OutlineEntry {
  /** From the top, with the keys of a dotted key one by one. */
  readonly path: Path;
  /** The path of what holds it: a table, or an inline table. */
  readonly base: Path;
  readonly node: AST.TOMLKeyValue;
  /** The inline table that holds it; undefined: it has lines of its own. */
  readonly inline: AST.TOMLInlineTable | undefined;
}

export interface OutlineTable {
  readonly path: Path;
  readonly node: AST.TOMLTable;
}

export interface Outline {
  readonly entries: readonly OutlineEntry[];
  readonly tables: readonly OutlineTable[];
}

/** In the order of the text; an inline table's entries follow the entry that holds it. Pure. */
export function outlineOf(tree: AST.TOMLProgram): Outline {
  const body = tree.body[0].body;
  const tables = body.filter((node) => node.type === 'TOMLTable').map((node) => ({ path: node.resolvedKey, node }));
  const entries = body.flatMap((node) =>
    node.type === 'TOMLTable'
      ? node.body.flatMap((entry) => entriesOf(entry, node.resolvedKey, undefined))
      : entriesOf(node, [], undefined),
  );
  return { entries, tables };
}

/** Whether `path` is `prefix` or lies below it. Pure. */
export function isAtOrBelow(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => part === path[index]);
}

function entriesOf(node: AST.TOMLKeyValue, base: Path, inline: AST.TOMLInlineTable | undefined): readonly OutlineEntry[] {
  const path = [...base, ...node.key.keys.map(keyName)];
  const { value } = node;
  const inner = value.type === 'TOMLInlineTable' ? value.body.flatMap((entry) => entriesOf(entry, path, value)) : [];
  return [{ path, base, node, inline }, ...inner];
}
