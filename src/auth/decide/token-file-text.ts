/** The text of `tokens.toml`, a file or a key of a Secret: a table per token. Edits keep comments and order. Pure. */
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { editToml } from '../../files/toml/decide/edit-toml.ts';
import { findPositions } from '../../files/toml/decide/parse-document.ts';
import { formatValue } from '../../files/toml/decide/toml-text.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { SCOPES } from '../../schema/words/access.ts';
import { CALLER_LIMITS, CallerLimits } from '../../schema/words/caller-limits.ts';
import { formatProblem, checkDocument } from '../../schema/slot/spec-problem.ts';

/** A token: `svc_<id>.<secret>`, with an id of 8 hexadecimal digits and a secret of 32 random bytes in base64url. */
export interface TokenParts {
  readonly id: string;
  readonly secret: string;
}

const TOKEN = /^svc_([0-9a-f]{8})\.([A-Za-z0-9_-]{43})$/;
export const TOKEN_ID = /^[0-9a-f]{8}$/;
export const SECRET_BYTES = 32;
export const ID_BYTES = 4;

export function parseToken(text: string): TokenParts | undefined {
  const match = text.length > 64 ? null : TOKEN.exec(text);
  const [, id, secret] = match ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

export const formatToken = ({ id, secret }: TokenParts): string => `svc_${id}.${secret}`;

export interface TokenRow extends CallerLimits {
  readonly label: string;
  readonly scope: (typeof SCOPES)[number];
  /** ISO 8601, UTC. */
  readonly created_at: string;
  /** ISO 8601. Undefined: never. */
  readonly expires_at?: string | undefined;
  /** Argon2id in its usual text form. */
  readonly hash: string;
}

export type Tokens = ReadonlyMap<string, TokenRow>;

/** Limits of callers without a token, by `anyone`, an e-mail address, `*@domain` or `*` for all addresses. */
export type CallerTables = ReadonlyMap<string, CallerLimits>;

/** Parsed tables by their own text, so that an unchanged table is not parsed again. */
export type TokenTables = ReadonlyMap<string, readonly [id: string, row: TokenRow]>;

export type TokenText =
  | { readonly ok: true; readonly tokens: Tokens; readonly callers: CallerTables; readonly tables: TokenTables }
  /** Each problem says where it is and how to fix it. */
  | { readonly ok: false; readonly problems: readonly string[] };

export const HEADER =
  '# Tokens for the API. Create them with "svcctl token create", revoke them with "svcctl token revoke"; secrets are not in this file.\n';

const LABEL_LIMIT = 100;

/** Also what the API and `svcctl` accept. */
export const TokenLabel = z
  .string()
  .trim()
  .min(1, 'Write a name for the token')
  .max(LABEL_LIMIT, `Use at most ${LABEL_LIMIT} characters for the name of a token`)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'Use no control characters in the name of a token');

const CALLER_NAMES = 'Write "anyone", an e-mail address in lower case, "*@" and a domain, or "*"';
const HASH = /^\$argon2id\$v=19\$[a-z0-9=,]+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const Row = z.strictObject({
  label: TokenLabel,
  scope: z.enum(SCOPES),
  created_at: z.iso.datetime({ offset: true }),
  expires_at: z.iso.datetime({ offset: true }).optional(),
  ...CALLER_LIMITS,
  // Not a rule whose message repeats the value.
  hash: z.string().refine((text) => HASH.test(text), 'Copy the whole hash, which begins with "$argon2id$"'),
});
const Unhashed = Row.omit({ hash: true });
/** Throws if a value is not valid, which the caller has checked. */
export const checkedRow = (row: unknown): Omit<TokenRow, 'hash'> => Unhashed.parse(row);

const File = z.strictObject({
  tokens: z.record(z.string().regex(TOKEN_ID, 'Write an id of 8 hexadecimal characters in lower case'), Row).default({}),
  callers: z
    .record(z.string().regex(/^(?:anyone|\*|[^@\s\p{Lu}\p{Cc}]{1,100}@[^@\s\p{Lu}\p{Cc}]{1,200})$/u, CALLER_NAMES), CallerLimits)
    .default({}),
});

/** `file`: its name in problems, which never contain hashes. `known`: tables of an earlier text. */
export function parseTokenText(text: string, file: string, known: TokenTables = new Map()): TokenText {
  const parts = parseTables(text, known);
  if (parts !== undefined) return { ok: true, tokens: new Map(parts.tables.values()), ...parts };
  const read = readToml(text);
  if (!read.ok) return { ok: false, problems: [`${file}:${read.line}:${read.column}: ${read.message}`] };
  const checked = checkDocument(File, read.table, 'camelCase');
  if (checked.ok) {
    const { tokens, callers } = checked.value;
    return { ok: true, tokens: new Map(Object.entries(tokens)), callers: new Map(Object.entries(callers)), tables: new Map() };
  }
  const positionOf = findPositions(text);
  return {
    ok: false,
    problems: checked.problems.map((problem) => formatProblem({ ...problem, file, ...positionOf(problem.path) }, 'camelCase')),
  };
}

export const NO_TOKENS: Extract<TokenText, { readonly ok: true }> = {
  ok: true,
  tokens: new Map(),
  callers: new Map(),
  tables: new Map(),
};

type EditedTokens = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly message: string };

/** The text with edited tokens. `file` is its name in problems, `place` begins messages. `known`: as above. */
export function editTokenText(
  text: string,
  { file, place }: Readonly<Record<'file' | 'place', string>>,
  edit: (tokens: Tokens) => Tokens,
  known: TokenTables,
): EditedTokens {
  const parsed = parseTokenText(text, file, known);
  if (!parsed.ok) return { ok: false, message: `${place} is invalid: ${parsed.problems.join('; ')}` };
  const edited = writeTokenText(text.trim() === '' ? HEADER : text, edit(parsed.tokens), parsed);
  if (edited !== undefined) return { ok: true, text: edited };
  return { ok: false, message: `${place} has a form that cannot be edited: write the tokens as tables such as "[tokens.1a2b3c4d]"` };
}

/** The text with these tokens; undefined if it cannot be edited in place. `before` must be valid. `known`: as above. */
export function writeTokenText(
  before: string,
  tokens: Tokens,
  { tables = new Map(), callers = new Map() }: Partial<Pick<Extract<TokenText, { ok: true }>, 'tables' | 'callers'>> = {},
): string | undefined {
  const edited = editTables(before, tokens, tables);
  if (edited !== undefined) return edited;
  const wanted = {
    ...(callers.size === 0 ? {} : { callers: Object.fromEntries(callers) }),
    ...(tokens.size === 0 ? {} : { tokens: Object.fromEntries(tokens) }),
  };
  return editToml(before, wanted, (text) => {
    const read = readToml(text);
    return read.ok ? read.table : undefined;
  });
}

/** Start of each table in the usual form. */
const TABLE_START = /^(?=\[tokens\.[0-9a-f]{8}\])/m;

/**
 * Undefined unless the text is in the usual form: comments and callers, then one table of a token after another.
 * Thousands of tables are read in milliseconds if few have changed. Parts that are valid on their own mean the same
 * together: a multi-line string that looks like a table would leave two invalid parts.
 */
function parseTables(text: string, known: TokenTables): { readonly tables: TokenTables; readonly callers: CallerTables } | undefined {
  const tables = new Map<string, readonly [string, TokenRow]>();
  let callers: CallerTables = new Map();
  const ids = new Set<string>();
  for (const part of text.split(TABLE_START)) {
    if (!part.startsWith('[tokens.')) {
      const read = readToml(part);
      const checked = read.ok && !('tokens' in read.table) ? checkDocument(File, read.table, 'camelCase') : undefined;
      if (checked?.ok !== true) return undefined;
      callers = new Map(Object.entries(checked.value.callers));
      continue;
    }
    const table = known.get(part) ?? parseTable(part);
    if (table === undefined || ids.has(table[0])) return undefined;
    ids.add(table[0]);
    tables.set(part, table);
  }
  return { tables, callers };
}

function parseTable(text: string): readonly [string, TokenRow] | undefined {
  const read = readToml(text);
  const checked = read.ok ? checkDocument(File, read.table, 'camelCase') : undefined;
  const [table, ...more] = checked?.ok === true ? Object.entries(checked.value.tokens) : [];
  const isAlone = checked?.ok === true && more.length === 0 && Object.keys(checked.value.callers).length === 0;
  return isAlone ? table : undefined;
}

/** Adds tables at the end, and cuts out others. Undefined if something else would have to be done. */
function editTables(before: string, tokens: Tokens, known: TokenTables): string | undefined {
  const parts = parseTables(before, known);
  if (parts === undefined) return undefined;
  const { tables, callers } = parts;
  const present = new Map(tables.values());
  const kept = before.split(TABLE_START).map((part) => {
    const table = tables.get(part);
    return table === undefined || tokens.has(table[0]) ? part : afterTable(part);
  });
  const added = [...tokens].filter(([id]) => !present.has(id)).map(([id, row]) => tableText(id, row));
  const text = [kept.join('').replace(/\s+$/, '\n'), ...added].join('\n');
  const edited = text.trim() === '' ? '' : text;
  const after = parseTables(edited, tables);
  const isRight =
    after?.tables.size === tokens.size &&
    [...after.tables.values()].every(([id, row]) => isSameValue(row, tokens.get(id))) &&
    isSameValue([...after.callers], [...callers]);
  return isRight ? edited : undefined;
}

/** The comments after the last key of a table, which belong to what follows. */
function afterTable(part: string): string {
  const lines = part.split('\n');
  const last = lines.findLastIndex((line) => line.trim() !== '' && !line.startsWith('#'));
  const rest = lines.slice(last + 1).join('\n');
  return rest.trim() === '' ? '' : rest.trimStart();
}

function tableText(id: string, row: TokenRow): string {
  const keys = Object.entries(row).flatMap(([key, value]: readonly [string, unknown]) =>
    value === undefined ? [] : `${key} = ${formatValue(value)}\n`,
  );
  return `[tokens.${id}]\n${keys.join('')}`;
}

function readToml(text: string) {
  try {
    return { ok: true, table: parse(text, { unsafeKeyBehaviour: 'throw' }) } as const;
  } catch (error) {
    if (!(error instanceof TomlError)) return { ok: false, line: 1, column: 1, message: 'Invalid TOML' } as const;
    // The rest of the message quotes the line, which may contain a hash.
    const [reason = ''] = error.message.replace(/^Invalid TOML document: /, '').split('\n');
    return { ok: false, line: error.line, column: error.column, message: `Invalid TOML: ${reason}` } as const;
  }
}

/** Ids. */
export interface StoreChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Another label, scope or hash. */
  readonly edited: readonly string[];
}

/** Undefined if nothing has changed. */
export function compareTokens(before: Tokens, after: Tokens): StoreChange | undefined {
  const added = [...after.keys()].filter((id) => !before.has(id));
  const removed = [...before.keys()].filter((id) => !after.has(id));
  const edited = [...after].filter(([id, row]) => before.has(id) && !isSameValue(row, before.get(id))).map(([id]) => id);
  return added.length + removed.length + edited.length > 0 ? { added, removed, edited } : undefined;
}
