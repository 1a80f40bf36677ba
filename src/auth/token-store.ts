/**
 * The tokens in `<config>/tokens.toml`, which people may edit while the service runs. A use checks the file's metadata
 * unless they were checked a millisecond ago, and a change is confirmed after two: a revoked token is refused from the
 * next request on. An invalid file changes nothing: the last valid tokens stay in force, and the log names the problem.
 */
import { readFileSync, statSync, type BigIntStats } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { lockDirectory } from '../files/directory-lock.ts';
import { decodeText, OPEN_FLAGS, readRegularFile, refusalOf } from '../files/regular-file.ts';
import { explainWriteError, ifThere, writeFileAtomically, writeJsonAtomically, type FileOwner } from '../files/write-file.ts';
import { messageOf } from '../platform/error-text.ts';
import type { Log } from '../platform/log.ts';
import { memoizeFor } from '../platform/memo.ts';
import { sleep } from '../platform/clock.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { compareTokens, editTokenText, NO_TOKENS, parseTokenText, TOKEN_ID } from './decide/token-file-text.ts';
import type { CallerTables, StoreChange, Tokens, TokenTables, TokenText } from './decide/token-file-text.ts';
import { parseJson } from '../platform/decide/parse-json.ts';

export const tokenFileOf = ({ SVC_CONFIG_DIR }: Pick<Settings, 'SVC_CONFIG_DIR'>): string => join(SVC_CONFIG_DIR, 'tokens.toml');

export interface TokenStore {
  current(): Tokens;
  /** Limits of callers without a token, as of the last call of `current`. */
  callers(): CallerTables;
  /**
   * Keeps comments and order. Other processes wait. Once it is done, all processes use the new tokens. Fails if the
   * file is invalid or cannot be written.
   */
  change(edit: (tokens: Tokens) => Tokens): Promise<TokenChange>;
}

export type TokenChange = { readonly ok: true } | { readonly ok: false; readonly message: string };

interface TokenStoreOptions {
  /** Absolute path of `tokens.toml`. It need not exist. */
  readonly path: string;
  readonly log: Pick<Log, 'warn'>;
  /** Called when the file was found to have other tokens than before, also after changes of this store. */
  readonly onChange?: (change: StoreChange) => void;
  /** Monotonic milliseconds. Default: the system's. */
  readonly now?: () => number;
}

/** A file with 50,000 tokens is smaller. */
const MAX_BYTES = 16 * 1024 * 1024;
/** A change takes milliseconds. */
const LOCK_WAIT_MS = 5000;
const LOCK_POLL_MS = 10;
/** A look at the file serves the uses of this time. */
const LOOK_MS = 1;
/** Longer than that in every process. A timer may fire a millisecond early. */
const CONFIRM_MS = LOOK_MS + 2;

export function createTokenStore({ path, log, onChange, now }: TokenStoreOptions): TokenStore {
  const copy = createTokenCopy({ log, fields: { file: path }, onChange });
  function look(): Tokens {
    const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (facts === undefined) return copy.update('absent', () => NO_TOKENS);
    return copy.update(versionOf(facts), (known) => readTokens(path, facts, known, log));
  }
  return {
    callers: copy.callers,
    current: memoizeFor(LOOK_MS, look, now),
    async change(edit) {
      try {
        await mkdir(dirname(path), { recursive: true });
        const change = await withLock(path, async () => await rewrite(path, copy.tables(), edit));
        if (change.ok) await sleep(CONFIRM_MS);
        return change;
      } catch (error) {
        return refuse(`Cannot write "${path}": ${explainWriteError(path, error)}`);
      }
    },
  };
}

interface TokenCopyOptions extends Pick<TokenStoreOptions, 'log'> {
  /** Fields of log lines, which say where the tokens are. */
  readonly fields: Readonly<Record<string, string>>;
  readonly onChange: TokenStoreOptions['onChange'] | undefined;
}

/** Keeps the tokens of the last valid version. Logs the problems of another one, and reports what changed. */
export function createTokenCopy({ log, fields, onChange = () => undefined }: TokenCopyOptions) {
  let version: string | undefined;
  let { tokens, callers, tables } = NO_TOKENS;
  return {
    tokens: () => tokens,
    callers: () => callers,
    /** Tables of the last valid version, for the next parse. */
    tables: () => tables,
    /** Parses another version than the last one. */
    update(present: string, parse: (known: TokenTables) => TokenText): Tokens {
      if (present === version) return tokens;
      const [isFirst, before] = [version === undefined, tokens];
      version = present;
      const parsed = parse(tables);
      if (parsed.ok) ({ tokens, callers, tables } = parsed);
      else for (const problem of parsed.problems) log.warn(fields, `${problem}. The tokens of the last valid version stay in force`);
      const change = isFirst ? undefined : compareTokens(before, tokens);
      if (change !== undefined) onChange(change);
      return tokens;
    },
  };
}

function readTokens(path: string, facts: BigIntStats, known: TokenTables, log: TokenStoreOptions['log']): TokenText {
  try {
    const refusal = refusalOf(facts, MAX_BYTES, 'it');
    if (refusal !== undefined) throw new Error(refusal);
    if ((facts.mode & 0o022n) !== 0n)
      return { ok: false, problems: ['Other users could add tokens to the file: make it writable for its owner only ("chmod 600")'] };
    const parsed = parseTokenText(decodeText(path, readFileSync(path, { flag: OPEN_FLAGS })), path, known);
    if (parsed.ok && (facts.mode & 0o077n) !== 0n)
      log.warn({ file: path }, `Other users can read the file with the hashes of tokens: run "chmod 600 ${path}"`);
    return parsed;
  } catch (error) {
    return { ok: false, problems: [`Cannot read "${path}": ${messageOf(error)}`] };
  }
}

async function rewrite(path: string, known: TokenTables, edit: (tokens: Tokens) => Tokens): Promise<TokenChange> {
  const before = await readText(path);
  const edited = editTokenText(before ?? '', { file: path, place: `The file "${path}"` }, edit, known);
  if (!edited.ok) return edited;
  await removeRemains(path);
  // The lock does not stop a person with a text editor.
  if ((await readText(path)) !== before) return refuse(`"${path}" has changed meanwhile: try again`);
  await writeFileAtomically(path, edited.text, { mode: 0o600, sync: true, directory: 'existing', ...(await findOwner(path)) });
  return { ok: true };
}

const readText = async (path: string): Promise<string | undefined> => await ifThere(readRegularFile(path, { mostBytes: MAX_BYTES }));

/** The service's user, who owns the slots: root may edit the file too, and the service must be able to replace it. */
async function findOwner(path: string): Promise<{ readonly owner?: FileOwner }> {
  const facts = process.getuid?.() === 0 ? await stat(join(dirname(path), 'slots')).catch(() => undefined) : undefined;
  return facts === undefined ? {} : { owner: { uid: facts.uid, gid: facts.gid } };
}

/** A killed writer leaves a temporary file with hashes behind. Only the holder of the lock writes. */
async function removeRemains(path: string): Promise<void> {
  const prefix = `.${basename(path)}.`;
  const remains = (await readdir(dirname(path))).filter((name) => name.startsWith(prefix) && name.endsWith('.tmp'));
  for (const name of remains) await rm(join(dirname(path), name), { force: true });
}

async function withLock(path: string, work: () => Promise<TokenChange>): Promise<TokenChange> {
  const deadline = performance.now() + LOCK_WAIT_MS;
  const owner = await findOwner(path);
  for (;;) {
    const answer = await lockDirectory({ directory: dirname(path), name: `.${basename(path)}`, since: Date.now(), ...owner });
    if (answer.kind === 'locked') return await work().finally(() => answer.lock.release());
    if (answer.kind === 'unusable') return refuse(`Cannot write to "${dirname(path)}": ${answer.message}`);
    if (performance.now() > deadline) return refuse(`"${path}" is locked, because ${answer.holder} is changing it: try again`);
    await sleep(LOCK_POLL_MS);
  }
}

const refuse = (message: string): TokenChange => ({ ok: false, message });

function versionOf({ dev, ino, size, mtimeNs, ctimeNs, mode }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}:${mode}`;
}

export type TokenUse = Awaited<ReturnType<typeof createTokenUse>>;

/** Id → ISO 8601 in UTC. */
const Uses = z.record(z.string().regex(TOKEN_ID), z.iso.datetime());

/** A file that cannot be read counts as empty: it says nothing that anything depends on. */
export async function readTokenUse(path: string): Promise<ReadonlyMap<string, number>> {
  const uses = Uses.safeParse(parseJson(await readRegularFile(path, { mostBytes: MAX_BYTES }).catch(() => '')));
  return new Map(Object.entries(uses.data ?? {}).map(([id, at]) => [id, Date.parse(at)]));
}

interface TokenUseOptions {
  readonly path: string;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Tokens that are gone are not written again. */
  readonly isKnown: (id: string) => boolean;
  readonly log: Pick<Log, 'warn'>;
}

/** When each token was last used, in the state directory, so that uses never touch a file that people edit. */
export async function createTokenUse({ path, wallNow, isKnown, log }: TokenUseOptions) {
  const uses = new Map(await readTokenUse(path));
  let isNoted = false;
  return {
    note(id: string): void {
      uses.set(id, wallNow());
      isNoted = true;
    },
    /** Unix milliseconds by id. */
    lastUses: (): ReadonlyMap<string, number> => uses,
    /** Writes what was noted since the last time. Never throws. */
    async flush(): Promise<void> {
      if (!isNoted) return;
      isNoted = false;
      for (const id of uses.keys()) if (!isKnown(id)) uses.delete(id);
      const times = Object.fromEntries([...uses].map(([id, at]) => [id, new Date(at).toISOString()]));
      await writeJsonAtomically(path, times, 0o600).catch((error: unknown) =>
        log.warn({ file: path }, `Could not record when tokens were last used: ${explainWriteError(path, error)}`),
      );
    },
  };
}
