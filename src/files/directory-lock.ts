/**
 * Lets only one service use a directory. The operating system holds the lock and releases it when the process ends, so
 * it is never stale. Node has no such locks, but SQLite holds one on a database file during an exclusive transaction.
 * Containers on one kernel see it if they share the file. See docs/decisions/0042-one-service-for-each-directory.md.
 * Nothing else in this process may open the lock file: POSIX releases the lock when any descriptor is closed.
 */
import { appendFile, chown, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';
import { codeOf, isAbsent, messageOf } from '../platform/error-text.ts';
import { readRegularFile } from './regular-file.ts';
import { writeJsonAtomically, type FileOwner } from './write-file.ts';

export interface LockOptions {
  readonly directory: string;
  /** Prefix of the file names. */
  readonly name: string;
  /** Unix milliseconds, shown as the start of the lock. */
  readonly since: number;
  /** New owner of the files, if allowed: the user of the service must be able to open a lock of root. */
  readonly owner?: FileOwner;
}

export type LockAnswer =
  | { readonly kind: 'locked'; readonly lock: DirectoryLock }
  /** `holder` describes the other process: `process 4711 on "host" since 2026-01-01T00:00:00.000Z`. */
  | { readonly kind: 'held'; readonly holder: string }
  /** The file cannot be created or read. */
  | { readonly kind: 'unusable'; readonly message: string };

export interface DirectoryLock {
  /** False after the directory was moved, deleted or emptied. */
  isInPlace(): Promise<boolean>;
  /** Later calls do nothing. */
  release(): void;
}

const Holder = z.object({ pid: z.int(), host: z.string(), since: z.string() });
/** https://www.sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_NOTADB = 26;

/** Does not wait. The directory must exist. Never throws. */
export async function lockDirectory({ directory, name, since, owner }: LockOptions): Promise<LockAnswer> {
  const [file, holderFile] = [join(directory, `${name}.lock`), join(directory, `${name}.json`)];
  const taken = take(file);
  if (taken.kind === 'held') return { kind: 'held', holder: describe(await readRegularFile(holderFile).catch(() => '')) };
  if (taken.kind === 'unusable') return { kind: 'unusable', message: await explain(file, taken.code) };
  const locked = await identityOf(file);
  const holder = { pid: process.pid, host: hostname(), since: new Date(since).toISOString() } satisfies z.output<typeof Holder>;
  // Informational only, so errors are ignored.
  await writeJsonAtomically(holderFile, holder, 0o644).catch(() => undefined);
  if (owner !== undefined) for (const each of [file, holderFile]) await chown(each, owner.uid, owner.gid).catch(() => undefined);
  return {
    kind: 'locked',
    lock: {
      isInPlace: async () => locked !== undefined && (await identityOf(file)) === locked,
      release: taken.release,
    },
  };
}

/** Whether a process of this host uses the directory; undefined if that is not known. Locks nothing, never throws. */
export async function isInUse(directory: string, name: string): Promise<boolean | undefined> {
  try {
    const holder = Holder.safeParse(parseJson(await readRegularFile(join(directory, `${name}.json`)))).data;
    if (holder?.host !== hostname()) return undefined;
    return process.kill(holder.pid, 0);
  } catch (error) {
    if (isAbsent(error)) return false;
    return codeOf(error) === 'EPERM' ? true : undefined;
  }
}

type Taken =
  | { readonly kind: 'taken'; release(): void }
  | { readonly kind: 'held' }
  | { readonly kind: 'unusable'; readonly code: unknown };

function take(file: string): Taken {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 0 });
    // The transaction never ends and never writes, so the file stays empty.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    const open = database;
    return {
      kind: 'taken',
      release() {
        if (open.isOpen) open.close();
      },
    };
  } catch (error) {
    if (database?.isOpen === true) database.close();
    const code = typeof error === 'object' && error !== null && 'errcode' in error ? error.errcode : undefined;
    return code === SQLITE_BUSY ? { kind: 'held' } : { kind: 'unusable', code };
  }
}

/** SQLite reports only that it cannot open the file; the system knows why. */
async function explain(file: string, code: unknown): Promise<string> {
  if (code === SQLITE_NOTADB) return `"${file}" is not a lock of this service; delete it`;
  return await appendFile(file, '').then(
    () => `"${file}" cannot be locked (SQLite error ${String(code)})`,
    (error: unknown) => messageOf(error),
  );
}

function describe(text: string): string {
  const holder = Holder.safeParse(parseJson(text)).data;
  return holder === undefined ? 'another process' : `process ${holder.pid} on "${holder.host}", since ${holder.since},`;
}

async function identityOf(file: string): Promise<string | undefined> {
  const facts = await stat(file, { bigint: true }).catch(() => undefined);
  return facts === undefined ? undefined : `${facts.dev}:${facts.ino}`;
}
