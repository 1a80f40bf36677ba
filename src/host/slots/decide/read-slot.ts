/** A slot's text as a spec, or everything that is wrong with it, each with file, line and column. Never throws. Pure. */
import { parse, TomlError } from 'smol-toml';
import { isTable, pathToSnakeCase, toCamelCase } from '../../../schema/key-case.ts';
import type { SlotName } from '../../../schema/names.ts';
import { parseSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot-spec.ts';
import { findPositions, positionOf } from '../../../files/toml/decide/toml-positions.ts';

export type ReadSlot =
  | { readonly ok: true; readonly spec: SlotSpec; readonly document: Readonly<Record<string, unknown>> }
  | {
      readonly ok: false;
      readonly problems: readonly SpecProblem[];
      /** As written, keys in camelCase; undefined when the text is no TOML. */
      readonly document: Readonly<Record<string, unknown>> | undefined;
    };

/** The schema has four levels; far more than that is no slot, and would only cost time and stack. */
const DEEPEST = 32;
/** More are counted, not listed: no one reads them. */
const MOST_PROBLEMS = 50;
const MARK = '\u{FEFF}';

/** Reads the text of `<name>.toml`; `file` is what problems call it. */
export function readSlot(name: SlotName, text: string, file: string): ReadSlot {
  const read = readDocument(text);
  if (!read.ok) return { ok: false, document: undefined, problems: [{ path: [], message: read.message, file, ...read.position }] };
  const parsed = parseSlot(name, read.document);
  if (parsed.ok) return { ok: true, spec: parsed.spec, document: read.document };
  const positionOfPath = findPositions(withoutMark(text));
  const problems = parsed.problems
    .slice(0, MOST_PROBLEMS)
    .map((problem) => ({ ...problem, file, ...positionOfPath(pathToSnakeCase(problem.path)) }))
    .toSorted((left, right) => left.line - right.line || left.column - right.column);
  const more = parsed.problems.length - problems.length;
  if (more > 0) problems.push({ path: [], message: `There are ${more} more problems`, file, line: 1, column: 1 });
  return { ok: false, document: read.document, problems };
}

type ReadDocument =
  | { readonly ok: true; readonly document: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly message: string; readonly position: { readonly line: number; readonly column: number } };

/** The document of a TOML text with its keys in camelCase, unchecked. */
export function readDocument(text: string): ReadDocument {
  const parsed = parseToml(withoutMark(text));
  if (!parsed.ok) return parsed;
  if (isDeeper(parsed.table, DEEPEST)) {
    return { ok: false, message: `Nest tables and lists at most ${DEEPEST} deep`, position: { line: 1, column: 1 } };
  }
  const document = toCamelCase(parsed.table);
  return { ok: true, document: isTable(document) ? document : {} };
}

/** Some editors begin a file with a byte order mark; it means nothing. */
export function withoutMark(text: string): string {
  return text.startsWith(MARK) ? text.slice(MARK.length) : text;
}

type ParsedToml =
  | { readonly ok: true; readonly table: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly message: string; readonly position: { readonly line: number; readonly column: number } };

function parseToml(text: string): ParsedToml {
  try {
    return { ok: true, table: parse(text, { unsafeKeyBehaviour: 'throw' }) };
  } catch (error) {
    if (!(error instanceof TomlError))
      return { ok: false, message: 'Write TOML that can be read: this is nested too deep', position: { line: 1, column: 1 } };
    return { ok: false, message: syntaxMessage(error), position: insideOf(text, error) };
  }
}

/** Its first line, without the excerpt below it, in our own tone. */
function syntaxMessage(error: TomlError): string {
  const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '');
  if (reason.includes('unsafe property')) return 'Use another key: "__proto__" and "constructor" are not allowed';
  return `Correct the TOML syntax: ${reason}`;
}

/** The parser may point one past the end of the text. */
function insideOf(text: string, error: TomlError): { readonly line: number; readonly column: number } {
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
