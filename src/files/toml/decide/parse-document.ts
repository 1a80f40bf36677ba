/** Reads a TOML text as a document: keys in camelCase, not validated, and never too deep. A text that is no TOML yields one message with its position. Pure. */
import { parse, TomlError } from 'smol-toml';
import { isTable, toCamelCase } from '../../../schema/words/key-case.ts';
import { positionOf, type TextPosition } from './toml-positions.ts';

type Table = Readonly<Record<string, unknown>>;

/** No schema has more than a few levels; a document with many more is something else and would only cost time and stack. */
const MAX_DEPTH = 32;
const TOO_DEEP = {
  ok: false,
  message: `Nest tables and lists at most ${MAX_DEPTH} levels deep`,
  position: { line: 1, column: 1 },
} as const;
const BYTE_ORDER_MARK = '\u{FEFF}';

export type ParsedDocument =
  | { readonly ok: true; readonly document: Table }
  | { readonly ok: false; readonly message: string; readonly position: TextPosition };

/** Returns the document of a TOML text with its keys in camelCase, not validated. */
export function parseDocument(text: string): ParsedDocument {
  const plain = withoutByteOrderMark(text);
  try {
    const table = parse(plain, { unsafeKeyBehaviour: 'throw' });
    if (isDeeper(table, MAX_DEPTH)) return TOO_DEEP;
    const document = toCamelCase(table);
    return { ok: true, document: isTable(document) ? document : {} };
  } catch (error) {
    // Without a `TomlError`, the parser exceeded the stack.
    return error instanceof TomlError
      ? { ok: false, message: syntaxMessage(error, plain), position: positionInText(plain, error) }
      : TOO_DEEP;
  }
}

/** Some editors begin a file with a byte order mark, which has no meaning in UTF-8. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
}

/** The first line of the parser's message, without the excerpt below it. */
function syntaxMessage(error: TomlError, text: string): string {
  const unquoted = UNQUOTED.exec(text.split('\n', error.line)[error.line - 1] ?? '');
  if (unquoted !== null) return quotesMessage(unquoted[1] ?? '', unquoted[2] ?? '');
  const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '');
  if (reason.includes('unsafe property')) return 'Use another key: "__proto__" and "constructor" are not allowed';
  return `Correct the TOML syntax: ${reason}`;
}

/** A line such as `backend = cpu`: the most frequent mistake in TOML. */
const UNQUOTED = /^\s*([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z][A-Za-z0-9_./:@-]*)\s*(?:#.*)?$/;

/** Keys whose value a message may repeat. */
const NEVER_SECRET: ReadonlySet<string> = new Set(['provider', 'backend', 'load', 'default', 'swap', 'drift']);

function quotesMessage(key: string, value: string): string {
  const lower = value.toLowerCase();
  if (lower === 'true' || lower === 'false') return `Write ${key} = ${lower}: TOML knows true and false in lower case only`;
  if (NEVER_SECRET.has(key)) return `Write ${key} = "${value}", with quotes: a text without them is not TOML`;
  // The value may be a secret that was written without quotes.
  return `Put the value of "${key}" in quotes, as in ${key} = "…": a text without quotes is not TOML`;
}

/** The parser may report a position after the end of the text. */
function positionInText(text: string, error: TomlError): TextPosition {
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
