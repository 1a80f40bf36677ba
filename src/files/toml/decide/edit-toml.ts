/** Edits a TOML text to mean another document, changing only keys that differ. Pure. */
import { getStaticTOMLValue, type AST } from 'toml-eslint-parser';
import { isTable } from '../../../schema/words/key-case.ts';
import { parseTomlTree } from './parse-document.ts';
import { formatValue, formatEntries, formatKey, formatTable } from './toml-text.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';

/** More than the deepest document needs. */
const MAX_ROUNDS = 100;

/**
 * `parse` returns the meaning of a text, or undefined. Returns undefined if the text cannot be edited in place. The
 * result was parsed again and means `wanted`.
 */
export function editToml(text: string, wanted: unknown, parse: (text: string) => unknown): string | undefined {
  let edited = text;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const meaning = parse(edited);
    if (!isTable(meaning) || !isTable(wanted)) return undefined;
    const changes = findChanges(meaning, wanted);
    if (changes === undefined) return edited;
    const tree = parseTomlTree(edited);
    const edits = tree === undefined ? [] : editsOfRound(edited, outlineOf(tree), changes);
    if (edits.length === 0) return undefined;
    edited = applyEdits(edited, edits);
  }
  return undefined;
}

/** Removals come first, so that no addition is mistaken for an old key; additions come last, one table per round. */
function editsOfRound(text: string, outline: Outline, changes: TomlChanges): readonly TextEdit[] {
  const valueAt = (path: Path) => outline.entries.find((entry) => isSamePath(entry.path, path))?.node.value;
  // An array of tables has headers and no single value to replace, so it is removed and added again.
  const spread = changes.replacements.filter(({ path }) => valueAt(path) === undefined).map(({ path }) => path);
  const removals = [...changes.removals, ...spread];
  if (removals.length > 0) return removalEdits(text, outline, removals);
  const replacements = changes.replacements.flatMap(({ path, value }) => {
    const node = valueAt(path);
    return node === undefined ? [] : [{ start: node.range[0], end: node.range[1], text: formatValue(value) }];
  });
  const [first] = changes.additions;
  return replacements.length > 0 || first === undefined ? replacements : [additionEdit(text, outline, first)];
}

function removalEdits(text: string, outline: Outline, paths: readonly Path[]): readonly TextEdit[] {
  const isRemoved = (path: Path) => paths.some((removed) => isAtOrBelow(path, removed));
  const tables = outline.tables
    .filter((table) => isRemoved(table.path))
    .map(({ node }) => {
      const end = nextLine(text, Math.max(node.key.range[1], ...node.body.map((entry) => entry.range[1])));
      return { start: linesBefore(text, lineStart(text, node.range[0]), (line) => line === ''), end, text: '' };
    });
  const entries = outline.entries.filter((entry) => isRemoved(entry.path) && !isRemoved(entry.base));
  const lines = entries
    .filter((entry) => entry.inline === undefined)
    .map(({ node }) => ({ start: lineStart(text, node.range[0]), end: nextLine(text, node.range[1]), text: '' }));
  return [...tables, ...lines, ...inlineRemovals(entries)];
}

/** An entry of an inline table is removed with the comma after it, the last ones with the comma before them. */
function inlineRemovals(removed: readonly OutlineEntry[]): readonly TextEdit[] {
  const tables = new Set(removed.flatMap((entry) => entry.inline ?? []));
  const nodes = new Set(removed.map((entry) => entry.node));
  return [...tables].flatMap(({ body, range }) => {
    const lastKept = body.findLastIndex((node) => !nodes.has(node));
    const kept = body[lastKept];
    if (kept === undefined) return [{ start: range[0], end: range[1], text: '{}' }];
    const edits = body.slice(0, lastKept).flatMap((node, index) => {
      const next = body[index + 1];
      return nodes.has(node) && next !== undefined ? [{ start: node.range[0], end: next.range[0], text: '' }] : [];
    });
    const last = body.at(-1);
    return last === undefined || last === kept ? edits : [...edits, { start: kept.range[1], end: last.range[1], text: '' }];
  });
}

/** Replaces the text from `start` up to `end`. */
interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The edits must not overlap. */
function applyEdits(text: string, edits: readonly TextEdit[]): string {
  // Last to first, so that no edit moves the offsets of another.
  return edits
    .toSorted((left, right) => right.start - left.start)
    .reduce((result, edit) => result.slice(0, edit.start) + edit.text + result.slice(edit.end), text);
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

/** Offset before the line break. */
function lineEnd(text: string, offset: number): number {
  const at = text.indexOf('\n', offset);
  if (at === -1) return text.length;
  return at > offset && text[at - 1] === '\r' ? at - 1 : at;
}

/** Offset after the line break. */
function nextLine(text: string, offset: number): number {
  const at = text.indexOf('\n', offset);
  return at === -1 ? text.length : at + 1;
}

/** Returns the start of the matching lines directly before `start`. */
function linesBefore(text: string, start: number, matches: (line: string) => boolean): number {
  let at = start;
  while (at > 0) {
    const previous = lineStart(text, at - 1);
    if (!matches(text.slice(previous, at).trim())) break;
    at = previous;
  }
  return at;
}

function lineBreakOf(text: string): string {
  const at = text.indexOf('\n');
  return at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n';
}

/**
 * Adds new keys next to existing ones. The parent is a header, an inline table, dotted keys, or implied by headers
 * below it.
 */
function additionEdit(text: string, outline: Outline, addition: Addition): TextEdit {
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
  // Plain values follow the table's last key. Once none are left, tables are added at the end of the text, under their
  // own headers.
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

type KeyPath = readonly string[];
type Table = Readonly<Record<string, unknown>>;

/** New keys of one table, which is present already. */
interface Addition {
  readonly parent: KeyPath;
  readonly entries: readonly (readonly [string, unknown])[];
}

interface TomlChanges {
  /** Includes everything below these keys. */
  readonly removals: readonly KeyPath[];
  /** Keys whose value is not a table. */
  readonly replacements: readonly { readonly path: KeyPath; readonly value: unknown }[];
  readonly additions: readonly Addition[];
}

/** Returns undefined if both documents mean the same. */
function findChanges(present: Table, wanted: Table): TomlChanges | undefined {
  const removals: KeyPath[] = [];
  const replacements: { path: KeyPath; value: unknown }[] = [];
  const additions: Addition[] = [];
  const compare = (old: Table, next: Table, parent: KeyPath): void => {
    const added = Object.entries(next).filter(([key]) => !Object.hasOwn(old, key));
    if (added.length > 0) additions.push({ parent, entries: added });
    for (const [key, value] of Object.entries(old)) {
      const path = [...parent, key];
      const other = next[key];
      if (Object.hasOwn(next, key) && isSameValue(value, other)) continue;
      if (isTable(value) && isTable(other)) compare(value, other, path);
      // The lines of a table can be anywhere in the file, so it is removed and its replacement is added afterwards.
      else if (isTable(value) || !Object.hasOwn(next, key)) removals.push(path);
      else replacements.push({ path, value: other });
    }
  };
  compare(present, wanted, []);
  return removals.length + replacements.length + additions.length === 0 ? undefined : { removals, replacements, additions };
}

/** Keys, and indices in arrays. */
type Path = readonly (string | number)[];

interface OutlineEntry {
  /** Absolute; each part of a dotted key is one element. */
  readonly path: Path;
  /** The path of the table or inline table that contains it. */
  readonly base: Path;
  readonly node: AST.TOMLKeyValue;
  /** The inline table that contains it; undefined if it has its own line. */
  readonly inline: AST.TOMLInlineTable | undefined;
}

interface Outline {
  readonly entries: readonly OutlineEntry[];
  readonly tables: readonly { readonly path: Path; readonly node: AST.TOMLTable }[];
}

/** In text order; entries of an inline table follow the entry that contains them. */
function outlineOf(tree: AST.TOMLProgram): Outline {
  const body = tree.body[0].body;
  const tables = body.filter((node) => node.type === 'TOMLTable').map((node) => ({ path: node.resolvedKey, node }));
  const entries = body.flatMap((node) =>
    node.type === 'TOMLTable'
      ? node.body.flatMap((entry) => entriesOf(entry, node.resolvedKey, undefined))
      : entriesOf(node, [], undefined),
  );
  return { entries, tables };
}

function isAtOrBelow(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => part === path[index]);
}

function isSamePath(path: Path, other: Path): boolean {
  return path.length === other.length && isAtOrBelow(path, other);
}

function entriesOf(node: AST.TOMLKeyValue, base: Path, inline: AST.TOMLInlineTable | undefined): readonly OutlineEntry[] {
  const path = [...base, ...getStaticTOMLValue(node.key)];
  const { value } = node;
  const inner = value.type === 'TOMLInlineTable' ? value.body.flatMap((entry) => entriesOf(entry, path, value)) : [];
  return [{ path, base, node, inline }, ...inner];
}
