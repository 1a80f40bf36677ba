/**
 * The tokens of a service in a cluster, whose replicas share one text. Each replica decides by its own copy, which
 * follows changes within milliseconds. An invalid text changes nothing: the last valid tokens stay in force.
 */
import { randomInt } from 'node:crypto';
import type { Log } from '../platform/log.ts';
import { sleep } from '../platform/clock.ts';
import type { Failure, Result } from '../schema/words/failure.ts';
import { editTokenText, parseTokenText } from './decide/token-file-text.ts';
import type { StoreChange, Tokens, TokenTables, TokenText } from './decide/token-file-text.ts';
import { createTokenCopy, type TokenChange, type TokenStore } from './token-store.ts';

export interface SharedText {
  /** Empty where nothing was stored yet. */
  readonly text: string;
  /** Changes with each write of anybody. Empty: it does not exist. */
  readonly version: string;
}

/** The adapter is `cluster/token-secret.ts`. */
export interface SharedTokenText {
  /** Name in messages: `the Secret "svc-tokens" in namespace "svc"`. */
  readonly name: string;
  /** No more bytes of text can be stored. */
  readonly limitBytes: number;
  /** This replica's copy, without a request. Undefined until the first read. The same object while nothing changes. */
  copy(): SharedText | undefined;
  /** The newest text. Fails with `NotFound` if it does not exist. */
  read(signal: AbortSignal): Promise<Result<SharedText>>;
  /** Replaces the text, and the copy with it. Fails with `Conflict` if the text changed since `before` was read. */
  write(before: SharedText, text: string, signal: AbortSignal): Promise<Result<void>>;
}

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

export function createSharedTokenStore({ shared, log, onChange }: SharedTokenStoreOptions): TokenStore {
  const copy = createTokenCopy({ log, fields: { tokens: shared.name }, onChange });

  function parse(text: string, known: TokenTables): TokenText {
    const parsed = parseTokenText(text, KEY, known);
    return parsed.ok ? parsed : { ok: false, problems: parsed.problems.map((problem) => `${problem} (in ${shared.name})`) };
  }

  async function rewrite(edit: (tokens: Tokens) => Tokens, signal: AbortSignal): Promise<TokenChange | 'conflict'> {
    const before = await shared.read(signal);
    if (!before.ok) return refuse(describe(before.failure));
    const { text } = before.value;
    const next = editTokenText(text, { file: KEY, place: `The key "${KEY}" of ${shared.name}` }, edit, copy.tables());
    if (!next.ok) return next;
    const bytes = Buffer.byteLength(next.text);
    if (bytes > shared.limitBytes)
      return refuse(`The tokens have ${bytes} bytes, and ${shared.name} can hold ${shared.limitBytes}: revoke tokens that are not used`);
    // Nothing to revoke.
    if (next.text === text) return { ok: true };
    const written = await shared.write(before.value, next.text, signal);
    if (written.ok) return { ok: true };
    return written.failure.reason === 'Conflict' ? 'conflict' : refuse(describe(written.failure));
  }

  function describe({ reason, message }: Failure): string {
    if (reason !== 'NotFound') return `Cannot change ${shared.name}: ${message}`;
    return `Cannot find ${shared.name}: create it, empty, or install the chart again`;
  }

  return {
    callers: copy.callers,
    current() {
      const source = shared.copy();
      return source === undefined ? copy.tokens() : copy.update(source.text, (known) => parse(source.text, known));
    },
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

const refuse = (message: string): TokenChange => ({ ok: false, message });
