/** Tokens for measurements: one that is known, alone or among thousands of others. */
import { HEADER, writeTokenText, type TokenRow } from '../src/auth/decide/token-file-text.ts';
import type { CallerLimits } from '../src/schema/words/caller-limits.ts';
import { createToken } from '../src/auth/manage-tokens.ts';

const CREATED_AT = '2026-01-01T00:00:00.000Z';

export interface TokenFile {
  /** Of `tokens.toml`. */
  readonly text: string;
  /** Tokens with scope `admin`, none of which was used yet. */
  readonly tokens: readonly string[];
}

interface WantedFile {
  readonly known: number;
  readonly total: number;
  /** Default: none. */
  readonly limits?: CallerLimits;
}

/** `known`: how many tokens are returned. The others of `total` have hashes of their own form and secrets that nobody knows. */
export async function createTokenFile({ known, total, limits }: WantedFile): Promise<TokenFile> {
  const made = await Promise.all(Array.from({ length: known }, createToken));
  const row = (hash: string): TokenRow => ({ label: 'bench', scope: 'admin', created_at: CREATED_AT, ...limits, hash });
  const rows = new Map(made.map(({ id, hash }) => [id, row(hash)] as const));
  const hash = made[0]?.hash ?? '';
  for (let index = 0; rows.size < total; index += 1) rows.set(index.toString(16).padStart(8, '0'), row(hash));
  const text = writeTokenText(HEADER, rows);
  if (text === undefined) throw new Error('The text of the tokens cannot be written');
  return { text, tokens: made.map(({ token }) => token) };
}
