/** The text of `tokens.toml`: one table for each token, under its id. People may edit it; comments and order are kept. Pure. */
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { editToml } from '../../files/toml/decide/edit-toml.ts';
import { findPositions } from '../../files/toml/decide/toml-positions.ts';
import { SCOPES } from '../../schema/access.ts';
import { formatProblem, checkDocument } from '../../schema/spec-problem.ts';
import { TOKEN_ID } from './token-format.ts';

/** What is stored of a token. */
export interface TokenRow {
  readonly label: string;
  readonly scope: (typeof SCOPES)[number];
  /** ISO 8601, UTC. */
  readonly created_at: string;
  /** Argon2id in its usual text form. */
  readonly hash: string;
}

export type Tokens = ReadonlyMap<string, TokenRow>;

export type TokenText =
  | { readonly ok: true; readonly tokens: Tokens }
  /** Each problem says where it is and how to fix it. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** For people, in lists and logs. */
const LABEL_LIMIT = 100;

/** Also what the API and `svcctl` accept. */
export const TokenLabel = z
  .string()
  .trim()
  .min(1, 'Write a name for the token')
  .max(LABEL_LIMIT, `Use at most ${LABEL_LIMIT} characters for the name of a token`)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'Use no control characters in the name of a token');

const HASH = /^\$argon2id\$v=19\$[a-z0-9=,]+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const Row = z.strictObject({
  label: TokenLabel,
  scope: z.enum(SCOPES),
  created_at: z.iso.datetime({ offset: true }),
  // Not a rule whose message repeats the value.
  hash: z.string().refine((text) => HASH.test(text), 'Copy the whole hash, which begins with "$argon2id$"'),
});
const File = z.strictObject({
  tokens: z.record(z.string().regex(TOKEN_ID, 'Write an id of 8 hexadecimal characters in lower case'), Row).default({}),
});

/** `file` is the name in problems. Values of hashes are never part of a message. */
export function parseTokenText(text: string, file: string): TokenText {
  const read = readToml(text);
  if (!read.ok) return { ok: false, problems: [`${file}:${read.line}:${read.column}: ${read.message}`] };
  const checked = checkDocument(File, read.table, 'camelCase');
  if (checked.ok) return { ok: true, tokens: new Map(Object.entries(checked.value.tokens)) };
  const positionOf = findPositions(text);
  return {
    ok: false,
    problems: checked.problems.map((problem) => formatProblem({ ...problem, file, ...positionOf(problem.path) }, 'camelCase')),
  };
}

/** Returns the text with these tokens; undefined if it cannot be edited in place. `before` must be a text without problems. */
export function writeTokenText(before: string, tokens: Tokens): string | undefined {
  const wanted = tokens.size === 0 ? {} : { tokens: Object.fromEntries(tokens) };
  return editToml(before, wanted, (text) => {
    const read = readToml(text);
    return read.ok ? read.table : undefined;
  });
}

function readToml(text: string) {
  try {
    return { ok: true, table: parse(text, { unsafeKeyBehaviour: 'throw' }) } as const;
  } catch (error) {
    if (!(error instanceof TomlError)) return { ok: false, line: 1, column: 1, message: 'Correct the TOML syntax' } as const;
    // The rest of the message quotes the line, which may contain a hash.
    const [reason = ''] = error.message.replace(/^Invalid TOML document: /, '').split('\n');
    return { ok: false, line: error.line, column: error.column, message: `Correct the TOML syntax: ${reason}` } as const;
  }
}
