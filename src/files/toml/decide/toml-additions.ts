/** Decides where new keys of a table are added to a TOML text: next to the keys that are there, in the same style. Pure. */
import type { AST } from 'toml-eslint-parser';
import { isTable } from '../../../schema/words/key-case.ts';
import { lineBreakOf, lineEnd, lineStart, linesBefore, type TextEdit } from './text-edit.ts';
import type { Addition } from './toml-changes.ts';
import { isAtOrBelow, isSamePath, type Outline, type OutlineEntry } from './toml-outline.ts';
import { formatEntries, formatKey, formatTable } from './toml-text.ts';

/** The addition's parent is present: by a header, as an inline table, by dotted keys, or implied by headers below it. */
export function additionEdit(text: string, outline: Outline, addition: Addition): TextEdit {
  const { parent, entries } = addition;
  const table = outline.tables.find(({ path, node }) => node.kind === 'standard' && isSamePath(path, parent))?.node;
  if (parent.length > 0 && table === undefined) {
    const value = outline.entries.find((entry) => isSamePath(entry.path, parent))?.node.value;
    if (value?.type === 'TOMLInlineTable') return intoInlineTable(value, entries);
    const dotted = outline.entries.findLast(
      ({ base, path }) => base.length < parent.length && path.length > parent.length && isAtOrBelow(path, parent),
    );
    if (dotted !== undefined) return besideDottedKey(text, dotted, addition);
    return atEnd(text, formatTable(parent, Object.fromEntries(entries)));
  }
  // Plain values follow the table's last key. Once none are left, tables are added at the end of the text, under their own headers.
  const lines = formatEntries(entries.filter(([, value]) => !isTable(value)));
  if (lines.length === 0) return atEnd(text, formatTable(parent, Object.fromEntries(entries)));
  const last = outline.entries.findLast((entry) => entry.inline === undefined && isSamePath(entry.base, parent))?.node ?? table?.key;
  return last === undefined ? beforeTables(text, outline, lines) : after(text, last, lines);
}

function after(text: string, node: AST.TOMLKeyValue | AST.TOMLKey, lines: readonly string[]): TextEdit {
  const at = lineEnd(text, node.range[1]);
  const indent = /^[ \t]*/.exec(text.slice(lineStart(text, node.range[0])))?.[0] ?? '';
  return { start: at, end: at, text: lines.map((line) => `${lineBreakOf(text)}${indent}${line}`).join('') };
}

/** There is no top-level key yet: new ones are added above the first header and the comment that belongs to it. */
function beforeTables(text: string, outline: Outline, lines: readonly string[]): TextEdit {
  const [first] = outline.tables;
  if (first === undefined) return atEnd(text, lines);
  const header = lineStart(text, first.node.range[0]);
  // A comment at the beginning of the file belongs to the file.
  const at = linesBefore(text, header, (line) => line.startsWith('#')) || header;
  return { start: at, end: at, text: [...lines, ''].map((line) => `${line}${lineBreakOf(text)}`).join('') };
}

function intoInlineTable(node: AST.TOMLInlineTable, entries: Addition['entries']): TextEdit {
  const added = formatEntries(entries).join(', ');
  const last = node.body.at(-1);
  if (last === undefined) return { start: node.range[0], end: node.range[1], text: `{ ${added} }` };
  return { start: last.range[1], end: last.range[1], text: `, ${added}` };
}

function besideDottedKey(text: string, sibling: OutlineEntry, { parent, entries }: Addition): TextEdit {
  const prefix = parent.slice(sibling.base.length).map((key) => `${formatKey(key)}.`);
  const lines = formatEntries(entries).map((line) => prefix.join('') + line);
  if (sibling.inline === undefined) return after(text, sibling.node, lines);
  const end = sibling.node.range[1];
  return { start: end, end, text: lines.map((line) => `, ${line}`).join('') };
}

function atEnd(text: string, lines: readonly string[]): TextEdit {
  const newline = lineBreakOf(text);
  const open = text === '' || text.endsWith('\n') ? '' : newline;
  const gap = text.trim() === '' || /\n[ \t]*\r?\n$/.test(text) ? '' : newline;
  return { start: text.length, end: text.length, text: open + gap + lines.map((line) => `${line}${newline}`).join('') };
}
