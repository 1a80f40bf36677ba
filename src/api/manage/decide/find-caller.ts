/** Keys of callers and labels of their tokens. Pure. */
import type { ErrorCode } from '../../../schema/words/error-codes.ts';

type FoundCaller = { readonly ok: true; readonly key: string } | { readonly ok: false; readonly code: ErrorCode; readonly message: string };

type Tokens = readonly { readonly id: string; readonly label: string }[];

const TOKEN = 'token:';
const USER = 'user:';
/** Callers without a credential, with and without authentication. */
const FIXED = { true: ['local', 'wyoming'], false: ['anyone', 'wyoming'] } as const;

/** Labels of tokens by the keys of their callers. */
export const labelsOf = (tokens: Tokens): ReadonlyMap<string, string> => new Map(tokens.map(({ id, label }) => [TOKEN + id, label]));

/**
 * Which caller is meant by its key or by the label of its token. Users of a proxy are not known before they come.
 */
export function findCaller(text: string, tokens: Tokens, isAuthOn: boolean): FoundCaller {
  const unknown = (code: ErrorCode, message: string): FoundCaller => ({ ok: false, code, message });
  if (FIXED[`${isAuthOn}`].some((key) => key === text)) return { ok: true, key: text };
  if (!isAuthOn)
    return unknown('token.not_found', 'Authentication is off, so nobody knows who sends a request: name a slot, or the caller "anyone"');
  if (text.startsWith(USER)) return { ok: true, key: text.toLowerCase() };
  const found = tokens.filter(({ id, label }) => (text.startsWith(TOKEN) ? `${TOKEN}${id}` : label) === text);
  const [only, second] = found;
  if (only === undefined) return unknown('token.not_found', `There is no caller "${text}": list the tokens with "svcctl token list"`);
  if (second === undefined) return { ok: true, key: TOKEN + only.id };
  return unknown('request.invalid', `Several tokens have the label "${text}": name one of ${found.map(({ id }) => TOKEN + id).join(', ')}`);
}
