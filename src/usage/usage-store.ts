/**
 * Usage in SQLite: a row for each hour, caller, slot, model and currency, and the same for each day, so that questions
 * about months read days. Requests of the same thread wait for each call, so no call waits for a lock or for a disk: a
 * thread of its own would need 30 MB.
 */
import { closeSync, constants, fchmodSync, fstatSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { codeOf, messageOf } from '../platform/error-text.ts';
import {
  COUNTS,
  isGrouped,
  NAMES,
  noCounts,
  splitRange,
  type Grouping,
  type HourRange,
  type UsageRow,
  type UsageSum,
} from './decide/usage-rows.ts';

const VERSION = 4;
const TABLES = [
  ['hours', 'hour'],
  ['days', 'day'],
] as const;
const FIRST_COLUMNS = 'caller, slot, model, requests, errors, input, cached, output, estimated, queueMs, busyMs';
const SECOND_COLUMNS = `${FIRST_COLUMNS}, currency, audioMs, images, nanos`;
/** Version 1 had no prices, no sound and no images, version 2 no energy, and version 3 no loads. */
const EARLIER_COLUMNS: Readonly<Record<number, string>> = { 1: FIRST_COLUMNS, 2: SECOND_COLUMNS, 3: `${SECOND_COLUMNS}, milliJoules` };
const HOURS_OF_DAY = 24;
/** A sum beyond the end of integers would make every later write fail. */
const MOST_SUM = 9e18;
const FILE_MODE = 0o600;
/** https://sqlite.org/rescode.html; the low byte of extended codes. */
const CODES: Readonly<Record<number, UsageFault>> = {
  5: 'locked',
  6: 'locked',
  8: 'read-only',
  11: 'damaged',
  13: 'full',
  26: 'damaged',
};
const SYSTEM_CODES: Readonly<Record<string, UsageFault>> = {
  EROFS: 'read-only',
  EACCES: 'read-only',
  EPERM: 'read-only',
  ENOSPC: 'full',
  EDQUOT: 'full',
};

export type UsageFault = 'locked' | 'read-only' | 'full' | 'damaged' | 'newer' | 'unusable';

export type StoreResult<T> =
  /** `notice`: what administrators should know. */
  | { readonly ok: true; readonly value: T; readonly notice?: string }
  | { readonly ok: false; readonly fault: UsageFault; readonly message: string };

export interface UsageQuestion extends HourRange {
  readonly by: readonly Grouping[];
  /** Fails with more sums than that. */
  readonly most: number;
}

interface Open {
  readonly database: DatabaseSync;
  readonly inode: bigint;
  readonly adds: readonly { readonly divisor: number; readonly statement: StatementSync }[];
}

export class UsageStore {
  readonly #path: string;
  #open: Open | undefined;

  /** The file is opened by the first call. */
  constructor(path: string) {
    this.#path = path;
  }

  /** All rows or none. */
  write(rows: readonly UsageRow[]): StoreResult<void> {
    return this.#attempt(({ database, adds }) => {
      inTransaction(database, () => {
        for (const row of rows) {
          const values = [...NAMES.map((name) => row[name]), ...COUNTS.map((count) => Math.min(row[count], MOST_SUM))];
          for (const { divisor, statement } of adds) statement.run(Math.floor(row.hour / divisor), ...values);
        }
      });
    });
  }

  read({ by, most, ...range }: UsageQuestion): StoreResult<readonly UsageSum[]> {
    return this.#attempt(({ database }) => {
      const { hours, days } = splitRange(range, by);
      const time = by.includes('hour') ? ['hour'] : by.includes('day') ? ['hour / 24 * 24 AS hour'] : [];
      const columns = [...time, ...NAMES.filter((name) => isGrouped(name, by))];
      const sums = COUNTS.map((count) => `TOTAL(${count}) AS ${count}`);
      const places = columns.map((_, index) => index + 1).join(', ');
      const statement = database.prepare(
        `SELECT ${[...columns, ...sums].join(', ')} FROM (
           SELECT * FROM hours WHERE hour >= ? AND hour < ? UNION ALL SELECT * FROM hours WHERE hour >= ? AND hour < ?
           UNION ALL SELECT day * 24, ${[...NAMES, ...COUNTS].join(', ')} FROM days WHERE day >= ? AND day < ?
         ) GROUP BY ${places} ORDER BY ${places} LIMIT ?`,
      );
      const bounds = [...hours, days].flatMap(({ from, to }) => [from, to]);
      return statement.all(...bounds, most + 1).map((row) => sumOf(row));
    });
  }

  /** From the first hour with requests to the end of the last one. */
  range(): StoreResult<HourRange> {
    return this.#attempt(({ database }) => {
      const found = database.prepare('SELECT (SELECT MIN(hour) FROM hours) AS first, (SELECT MAX(hour) + 1 FROM hours) AS past').get();
      return { from: Number(found?.['first'] ?? 0), to: Number(found?.['past'] ?? 0) };
    });
  }

  /** Deletes rows of hours before this one. */
  prune(before: number): StoreResult<void> {
    return this.#attempt(({ database }) => {
      inTransaction(database, () => {
        database.prepare('DELETE FROM hours WHERE hour < ?').run(before);
        database.prepare('DELETE FROM days WHERE day < ?').run(Math.floor(before / 24));
      });
    });
  }

  /**
   * Moves what was written from the log into the file. Call nothing else until it resolves: the log must not begin anew
   * before the file is on the disk, so that a power failure damages neither. Never rejects.
   */
  async checkpoint(): Promise<void> {
    if (this.#open === undefined) return;
    try {
      await sync(`${this.#path}-wal`);
      this.#open.database.exec('PRAGMA wal_checkpoint(PASSIVE)');
      await sync(this.#path);
    } catch {
      // The log grows until a later call succeeds.
    }
  }

  close(): void {
    const open = this.#open;
    this.#open = undefined;
    try {
      open?.database.close();
    } catch {
      // What was committed is in the file.
    }
  }

  #attempt<T>(work: (open: Open) => T): StoreResult<T> {
    const first = this.#try(work);
    if (first.ok || first.fault !== 'damaged' || !this.#setAside()) return first;
    const again = this.#try(work);
    const kept = `"${this.#path}" was damaged and is now "${asideOf(this.#path)}": `;
    return again.ok ? { ...again, notice: `${kept}usage begins anew` } : { ...again, message: kept + again.message };
  }

  #try<T>(work: (open: Open) => T): StoreResult<T> {
    try {
      // Somebody may have deleted or replaced the file.
      if (this.#open !== undefined && inodeOf(this.#path) !== this.#open.inode) this.close();
      this.#open ??= openDatabase(this.#path);
      return { ok: true, value: work(this.#open) };
    } catch (error) {
      this.close();
      return { ok: false, fault: faultOf(error), message: messageOf(error) };
    }
  }

  /** Returns false if it cannot be renamed. One damaged file is kept. */
  #setAside(): boolean {
    try {
      renameSync(this.#path, asideOf(this.#path));
      for (const end of ['-wal', '-shm']) rmSync(this.#path + end, { force: true });
      return true;
    } catch {
      return false;
    }
  }
}

const asideOf = (path: string): string => `${path}.damaged`;

async function sync(path: string): Promise<void> {
  await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  await handle.datasync();
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function openDatabase(path: string): Open {
  // SQLite would create it readable for others, and waits for the writer of a named pipe.
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOFOLLOW, FILE_MODE);
  let inode: bigint;
  try {
    const facts = fstatSync(descriptor, { bigint: true });
    if (!facts.isFile()) throw new FaultyFile('unusable', `"${path}" is not a regular file`);
    if ((facts.mode & 0o77n) !== 0n) fchmodSync(descriptor, FILE_MODE);
    inode = facts.ino;
  } finally {
    closeSync(descriptor);
  }
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    const newer = prepareSchema(database);
    if (newer !== undefined)
      throw new FaultyFile('newer', `"${path}" was written by a newer version (schema ${newer}): update this one, or move the file away`);
    return { database, inode, adds: [addTo(database, 'hours', 'hour', 1), addTo(database, 'days', 'day', HOURS_OF_DAY)] };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Returns the version of the file instead if it is newer than this program. */
function prepareSchema(database: DatabaseSync): number | undefined {
  const version = versionOf(database);
  if (version > VERSION) return version;
  // `checkpoint` syncs in the same order as SQLite would, in threads of the system.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0');
  if (version === VERSION) return undefined;
  inTransaction(database, () => {
    // Another process may have been faster.
    const found = versionOf(database);
    if (found >= VERSION) return;
    for (const [table, time] of TABLES) {
      if (found > 0) database.exec(`ALTER TABLE ${table} RENAME TO former_${table}`);
      createTable(database, table, time);
      if (found === 0) continue;
      const columns = `${time}, ${EARLIER_COLUMNS[found] ?? FIRST_COLUMNS}`;
      database.exec(`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM former_${table}; DROP TABLE former_${table}`);
    }
    database.exec(`PRAGMA user_version = ${VERSION}`);
  });
  return undefined;
}

function createTable(database: DatabaseSync, table: string, time: string): void {
  const names = NAMES.map((name) => `${name} TEXT NOT NULL DEFAULT ''`);
  const counts = COUNTS.map((count) => `${count} INTEGER NOT NULL DEFAULT 0`);
  const columns = [`${time} INTEGER NOT NULL`, ...names, ...counts].join(', ');
  database.exec(`CREATE TABLE ${table} (${columns}, PRIMARY KEY (${time}, ${NAMES.join(', ')})) STRICT, WITHOUT ROWID`);
}

const versionOf = (database: DatabaseSync): number => Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);

function inTransaction(database: DatabaseSync, work: () => void): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    work();
    database.exec('COMMIT');
  } catch (error) {
    // Some errors have rolled it back already.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function addTo(database: DatabaseSync, table: string, time: string, divisor: number): Open['adds'][number] {
  const columns = [time, ...NAMES, ...COUNTS];
  const sums = COUNTS.map((count) => `${count} = MIN(${count} + excluded.${count}, ${BigInt(MOST_SUM)})`);
  const statement = database.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
     ON CONFLICT (${time}, ${NAMES.join(', ')}) DO UPDATE SET ${sums.join(', ')}`,
  );
  return { divisor, statement };
}

/** Called for up to 50,000 rows while requests wait. */
function sumOf(row: Readonly<Record<string, SQLOutputValue>>): UsageSum {
  const names: Partial<Record<(typeof NAMES)[number], string>> = {};
  for (const name of NAMES) if (row[name] !== undefined) names[name] = String(row[name]);
  const sum = { currency: '', ...(row['hour'] === undefined ? {} : { hour: Number(row['hour']) }), ...names, ...noCounts() };
  for (const count of COUNTS) sum[count] = Number(row[count] ?? 0);
  return sum;
}

class FaultyFile extends Error {
  readonly fault: UsageFault;

  constructor(fault: UsageFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

function faultOf(error: unknown): UsageFault {
  if (error instanceof FaultyFile) return error.fault;
  const system = SYSTEM_CODES[codeOf(error)];
  if (system !== undefined) return system;
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'errcode') : undefined;
  return (typeof code === 'number' ? CODES[code & 0xff] : undefined) ?? 'unusable';
}
