/**
 * The tokens of a service in a cluster, whose replicas share one text. Each replica decides by its own copy, which
 * follows changes within milliseconds. An invalid text changes nothing: the last valid tokens stay in force.
 */
import { randomInt } from 'node:crypto';
import type { Log } from '../platform/log.ts';
import { sleep } from '../platform/clock.ts';
import type { Failure } from '../schema/words/failure.ts';
import {
  compareTokens,
  HEADER,
  parseTokenText,
  writeTokenText,
  type StoreChange,
  type Tokens,
  type TokenTables,
} from './decide/token-file-text.ts';
import type { SharedText, SharedTokenText } from './ports.ts';
import type { TokenChange, TokenStore } from './token-store.ts';

export interface SharedTokenStoreOptions {
  readonly shared: SharedTokenText;
  readonly log: Pick<Log, 'warn'>;
  /** Called when other tokens were found than before, also after changes of this store. */
  readonly onChange?: (change: StoreChange) => void;
}

/** Each conflict means that another writer has succeeded, so this fails only with as many concurrent writers. */
const MOST_ATTEMPTS = 10;
/** The longest pause before another attempt, so that several writers do not meet again. */
const PAUSE_MS = 50;
const CHANGE_TIMEOUT_MS = 15_000;
/** File name in problems with a line. */
const KEY = 'tokens.toml';

export function createSharedTokenStore({ shared, log, onChange = () => undefined }: SharedTokenStoreOptions): TokenStore {
  let known: { readonly source: SharedText | undefined; readonly tokens: Tokens } = { source: undefined, tokens: new Map() };
  let tables: TokenTables = new Map();

  function current(): Tokens {
    const source = shared.copy();
    if (source === known.source || source === undefined) return known.tokens;
    const before = known;
    const isSame = source.text === before.source?.text;
    known = { source, tokens: isSame ? before.tokens : parse(source) };
    const change = before.source === undefined ? undefined : compareTokens(before.tokens, known.tokens);
    if (change !== undefined) onChange(change);
    return known.tokens;
  }

  function parse({ text }: SharedText): Tokens {
    const parsed = parseTokenText(text, KEY, tables);
    if (parsed.ok) {
      ({ tables } = parsed);
      return parsed.tokens;
    }
    for (const problem of parsed.problems)
      log.warn({ tokens: shared.name }, `${problem} (in ${shared.name}). The tokens of the last valid version stay in force`);
    return known.tokens;
  }

  async function rewrite(edit: (tokens: Tokens) => Tokens, signal: AbortSignal): Promise<TokenChange | 'conflict'> {
    const before = await shared.read(signal);
    if (!before.ok) return refuse(describe(before.failure));
    const next = edited(before.value.text, edit);
    if (!next.ok) return next;
    // Nothing to revoke.
    if (next.text === before.value.text) return { ok: true };
    const written = await shared.write(before.value, next.text, signal);
    if (written.ok) return { ok: true };
    return written.failure.reason === 'Conflict' ? 'conflict' : refuse(describe(written.failure));
  }

  function edited(text: string, edit: (tokens: Tokens) => Tokens): { readonly ok: true; readonly text: string } | Refused {
    const parsed = parseTokenText(text, KEY, tables);
    if (!parsed.ok) return refuse(`The key "${KEY}" of ${shared.name} is invalid: ${parsed.problems.join('; ')}`);
    const next = writeTokenText(text.trim() === '' ? HEADER : text, edit(parsed.tokens), parsed.tables);
    if (next === undefined)
      return refuse(`The form of the tokens in ${shared.name} cannot be edited: write them as tables such as "[tokens.1a2b3c4d]"`);
    const bytes = Buffer.byteLength(next);
    if (bytes <= shared.limitBytes) return { ok: true, text: next };
    return refuse(`The tokens have ${bytes} bytes, and ${shared.name} can hold ${shared.limitBytes}: revoke tokens that are not used`);
  }

  function describe({ reason, message }: Failure): string {
    if (reason !== 'NotFound') return `Cannot change ${shared.name}: ${message}`;
    return `Cannot find ${shared.name}: create it, empty, or install the chart again`;
  }

  return {
    current,
    async change(edit) {
      const signal = AbortSignal.timeout(CHANGE_TIMEOUT_MS);
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
        const answer = await rewrite(edit, signal);
        if (answer !== 'conflict') return answer;
        await sleep(randomInt(PAUSE_MS), signal);
      }
      return refuse(`Others keep changing ${shared.name}: try again`);
    },
  };
}

type Refused = Extract<TokenChange, { readonly ok: false }>;

const refuse = (message: string): Refused => ({ ok: false, message });
