/** Edits a TOML text so that it means another document, changing only the keys that differ. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';
import { applyEdits, lineStart, linesBefore, nextLine, type TextEdit } from './text-edit.ts';
import { additionEdit } from './toml-additions.ts';
import { findChanges, type TomlChanges } from './toml-changes.ts';
import { isAtOrBelow, isSamePath, outlineOf, type Outline, type OutlineEntry, type Path } from './toml-outline.ts';
import { parseTomlTree } from './toml-positions.ts';
import { formatValue } from './toml-text.ts';

/** Removals and replacements take one round each, additions one per table: even the deepest document needs far fewer. */
const MAX_ROUNDS = 100;

/**
 * `parse` returns the meaning of a text, or undefined if it has none. Returns undefined if the text cannot be edited in place and must be replaced.
 * The result has been parsed again: it means `wanted`.
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
