/** Where new keys of a table go in a TOML text: beside the keys that are there, in their style. Pure. */
import type { AST } from 'toml-eslint-parser';
import { isTable } from '../../../schema/key-case.ts';
import { commentLinesBefore, lineBreakOf, lineEnd, lineStart, type TextEdit } from './text-edit.ts';
import { isAtOrBelow, type Outline, type OutlineEntry } from './toml-outline.ts';
import { formatKey, formatTable, formatValue } from './toml-text.ts';

type Entries = readonly (readonly [string, unknown])[];
type Path = readonly string[];

/** `parent` is there, by a header, as an inline table, by dotted keys, or implied by headers below it. */
export function additionEdit(text: string, outline: Outline, parent: Path, entries: Entries): TextEdit {
  if (parent.length === 0) return besideLines(text, outline, parent, entries, undefined);
  const table = outline.tables.find(({ path, node }) => node.kind === 'standard' && isSame(path, parent));
  if (table !== undefined) return besideLines(text, outline, parent, entries, table.node);
  const holder = outline.entries.find((entry) => isSame(entry.path, parent));
  if (holder?.node.value.type === 'TOMLInlineTable') return intoInlineTable(holder.node.value, entries);
  const dotted = outline.entries.findLast(
    (entry) => entry.base.length < parent.length && entry.path.length > parent.length && isAtOrBelow(entry.path, parent),
  );
  if (dotted !== undefined) return besideDottedKey(text, dotted, parent, entries);
  return atTheEnd(text, formatTable(parent, Object.fromEntries(entries)));
}

/** Plain values behind the table's last key; once there are none left, tables under headers of their own at the end of the text. */
function besideLines(
  text: string,
  outline: Outline,
  parent: Path,
  entries: Entries,
  table: Outline['tables'][number]['node'] | undefined,
): TextEdit {
  const lines = entries.filter(([, value]) => !isTable(value)).map(([key, value]) => `${formatKey(key)} = ${formatValue(value)}`);
  if (lines.length === 0) return atTheEnd(text, formatTable(parent, Object.fromEntries(entries)));
  const last = outline.entries.findLast((entry) => entry.inline === undefined && isSame(entry.base, parent))?.node ?? table?.key;
  return last === undefined ? beforeTheTables(text, outline, lines) : behind(text, last, lines);
}

function behind(text: string, node: AST.TOMLKeyValue | AST.TOMLKey, lines: readonly string[]): TextEdit {
  const at = lineEnd(text, node.range[1]);
  const indent = /^[ \t]*/.exec(text.slice(lineStart(text, node.range[0])))?.[0] ?? '';
  return { start: at, end: at, text: lines.map((line) => `${lineBreakOf(text)}${indent}${line}`).join('') };
}

/** The top has no key yet: new ones go above the first header and the comment that belongs to it. */
function beforeTheTables(text: string, outline: Outline, lines: readonly string[]): TextEdit {
  const [first] = outline.tables;
  if (first === undefined) return atTheEnd(text, lines);
  const header = lineStart(text, first.node.range[0]);
  const comment = commentLinesBefore(text, header);
  // A comment that begins the file speaks of the file.
  const at = comment === 0 ? header : comment;
  return { start: at, end: at, text: [...lines, ''].map((line) => `${line}${lineBreakOf(text)}`).join('') };
}

function intoInlineTable(node: AST.TOMLInlineTable, entries: Entries): TextEdit {
  const added = entries.map(([key, value]) => `${formatKey(key)} = ${formatValue(value)}`).join(', ');
  const last = node.body.at(-1);
  if (last === undefined) return { start: node.range[0], end: node.range[1], text: `{ ${added} }` };
  return { start: last.range[1], end: last.range[1], text: `, ${added}` };
}

function besideDottedKey(text: string, sibling: OutlineEntry, parent: Path, entries: Entries): TextEdit {
  const prefix = parent.slice(sibling.base.length).map(formatKey);
  const lines = entries.map(([key, value]) => `${[...prefix, formatKey(key)].join('.')} = ${formatValue(value)}`);
  if (sibling.inline === undefined) return behind(text, sibling.node, lines);
  const end = sibling.node.range[1];
  return { start: end, end, text: lines.map((line) => `, ${line}`).join('') };
}

function atTheEnd(text: string, lines: readonly string[]): TextEdit {
  const newline = lineBreakOf(text);
  const open = text === '' || text.endsWith('\n') ? '' : newline;
  const gap = text.trim() === '' || /\n[ \t]*\r?\n$/.test(text) ? '' : newline;
  return { start: text.length, end: text.length, text: open + gap + lines.map((line) => `${line}${newline}`).join('') };
}

function isSame(path: readonly (string | number)[], other: readonly (string | number)[]): boolean {
  return path.length === other.length && isAtOrBelow(path, other);
}
