/** Lists the parts of a TOML text that an edit can change: each key with its value and each table header, with path and range. Pure. */
import { getStaticTOMLValue, type AST } from 'toml-eslint-parser';

/** Keys, and indices in arrays. */
export type Path = readonly (string | number)[];

export interface OutlineEntry {
  /** From the top, with each part of a dotted key as one element. */
  readonly path: Path;
  /** The path of the table or inline table that contains it. */
  readonly base: Path;
  readonly node: AST.TOMLKeyValue;
  /** The inline table that contains it; undefined if it has its own line. */
  readonly inline: AST.TOMLInlineTable | undefined;
}

export interface Outline {
  readonly entries: readonly OutlineEntry[];
  readonly tables: readonly { readonly path: Path; readonly node: AST.TOMLTable }[];
}

/** In the order of the text; the entries of an inline table follow the entry that contains them. */
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

export function isAtOrBelow(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => part === path[index]);
}

export function isSamePath(path: Path, other: Path): boolean {
  return path.length === other.length && isAtOrBelow(path, other);
}

function entriesOf(node: AST.TOMLKeyValue, base: Path, inline: AST.TOMLInlineTable | undefined): readonly OutlineEntry[] {
  const path = [...base, ...getStaticTOMLValue(node.key)];
  const { value } = node;
  const inner = value.type === 'TOMLInlineTable' ? value.body.flatMap((entry) => entriesOf(entry, path, value)) : [];
  return [{ path, base, node, inline }, ...inner];
}
