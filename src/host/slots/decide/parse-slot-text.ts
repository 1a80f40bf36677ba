/** Parses a slot's TOML text into a spec, or into everything that is wrong with it, each problem with file, line and column. Never throws. Pure. */
import { parseDocument, withoutByteOrderMark } from '../../../files/toml/decide/parse-document.ts';
import { findPositions } from '../../../files/toml/decide/toml-positions.ts';
import { pathToSnakeCase } from '../../../schema/words/key-case.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { parseSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot/slot-spec.ts';

type Table = Readonly<Record<string, unknown>>;

export type ParsedSlotText =
  | { readonly ok: true; readonly spec: SlotSpec; readonly document: Table }
  | {
      readonly ok: false;
      readonly problems: readonly SpecProblem[];
      /** As written, with keys in camelCase; undefined if the text is not valid TOML. */
      readonly document: Table | undefined;
    };

/** Further problems are counted instead of listed, since nobody reads them. */
const MAX_PROBLEMS = 50;

/** Parses the text of `<name>.toml`; `file` is the file name in problems. */
export function parseSlotText(name: SlotName, text: string, file: string): ParsedSlotText {
  const read = parseDocument(text);
  if (!read.ok) return { ok: false, document: undefined, problems: [{ path: [], message: read.message, file, ...read.position }] };
  const parsed = parseSlot(name, read.document);
  if (parsed.ok) return { ok: true, spec: parsed.spec, document: read.document };
  const positionOfPath = findPositions(withoutByteOrderMark(text));
  const problems = parsed.problems
    .slice(0, MAX_PROBLEMS)
    .map((problem) => ({ ...problem, file, ...positionOfPath(pathToSnakeCase(problem.path)) }))
    .toSorted((left, right) => left.line - right.line || left.column - right.column);
  const more = parsed.problems.length - problems.length;
  if (more > 0) problems.push({ path: [], message: `There are ${more} more problems`, file, line: 1, column: 1 });
  return { ok: false, document: read.document, problems };
}
