/** Changes a TOML text so that it means another document, touching no more of it than the changed keys. Pure. */
import { applyEdits, blankLinesBefore, lineStart, nextLine, type TextEdit } from './text-edit.ts';
import { additionEdit } from './toml-additions.ts';
import { findChanges, type TomlChanges } from './toml-changes.ts';
import { isAtOrBelow, outlineOf, type Outline, type OutlineEntry } from './toml-outline.ts';
import { parseTomlTree } from './toml-positions.ts';
import { formatValue } from './toml-text.ts';

/** Removals and replacements take one round, additions one for each table: a document of the deepest nesting needs far fewer. */
const MOST_ROUNDS = 100;

/**
 * `parse` gives the meaning of a text, undefined where it has none. Undefined when the text cannot be edited in place; then it must be written anew.
 * The answer has been read back: it means `wanted`.
 */
export function editToml(text: string, wanted: unknown, parse: (text: string) => unknown): string | undefined {
  let edited = text;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const meaning = parse(edited);
    if (meaning === undefined) return undefined;
    const changes = findChanges(meaning, wanted);
    if (changes === undefined) return edited;
    const tree = parseTomlTree(edited);
    const edits = tree === undefined ? [] : editsOfRound(edited, outlineOf(tree), changes);
    if (edits.length === 0) return undefined;
    edited = applyEdits(edited, edits);
  }
  return undefined;
}

/** Removals first, so that nothing added can be taken for something old; then additions, a table at a time. */
function editsOfRound(text: string, outline: Outline, changes: TomlChanges): readonly TextEdit[] {
  const valueOf = (path: readonly string[]) =>
    outline.entries.find((entry) => entry.path.length === path.length && isAtOrBelow(entry.path, path));
  // An array of tables has headers and no value to replace: it goes as a whole.
  const spread = changes.replacements.filter((change) => valueOf(change.path) === undefined).map((change) => change.path);
  const removals = [...changes.removals, ...spread];
  if (removals.length > 0) return removalEdits(text, outline, removals);
  if (changes.replacements.length > 0) {
    return changes.replacements.flatMap((change) => {
      const node = valueOf(change.path)?.node.value;
      return node === undefined ? [] : [{ start: node.range[0], end: node.range[1], text: formatValue(change.value) }];
    });
  }
  const [first] = changes.additions;
  return first === undefined ? [] : [additionEdit(text, outline, first.parent, first.entries)];
}

function removalEdits(text: string, outline: Outline, paths: readonly (readonly string[])[]): readonly TextEdit[] {
  const goes = (path: readonly (string | number)[]) => paths.some((removed) => isAtOrBelow(path, removed));
  const tables = outline.tables
    .filter((table) => goes(table.path))
    .map(({ node }) => {
      const end = nextLine(text, Math.max(node.key.range[1], ...node.body.map((entry) => entry.range[1])));
      return { start: blankLinesBefore(text, lineStart(text, node.range[0])), end, text: '' };
    });
  const matching = outline.entries.filter((entry) => goes(entry.path));
  const lines = matching
    .filter((entry) => entry.inline === undefined && !goes(entry.base))
    .map(({ node }) => ({ start: lineStart(text, node.range[0]), end: nextLine(text, node.range[1]), text: '' }));
  const inline = matching.filter((entry) => entry.inline !== undefined && !goes(entry.base));
  return [...tables, ...lines, ...inlineRemovals(inline)];
}

/** Entries of inline tables go with the comma that follows them, the last ones with the comma before. */
function inlineRemovals(removed: readonly OutlineEntry[]): readonly TextEdit[] {
  const holders = new Set(removed.map((entry) => entry.inline).filter((holder) => holder !== undefined));
  const nodes = new Set(removed.map((entry) => entry.node));
  return [...holders].flatMap((holder) => {
    const lastKept = holder.body.findLastIndex((node) => !nodes.has(node));
    const kept = holder.body[lastKept];
    if (kept === undefined) return [{ start: holder.range[0], end: holder.range[1], text: '{}' }];
    const edits = holder.body.slice(0, lastKept).flatMap((node, index) => {
      const next = holder.body[index + 1];
      return nodes.has(node) && next !== undefined ? [{ start: node.range[0], end: next.range[0], text: '' }] : [];
    });
    const last = holder.body.at(-1);
    return last === undefined || last === kept ? edits : [...edits, { start: kept.range[1], end: last.range[1], text: '' }];
  });
}
