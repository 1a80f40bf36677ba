/**
 * The revisions of each slot, in `<state>/revisions/<slot>/<number>.json`. Passes never wait for them: what is not
 * written yet is in memory, and what cannot be written is written with a later change.
 */
import { join } from 'node:path';
import { z } from 'zod';
import type { Report, StatusSink } from '../../reconciler/ports.ts';
import { betterOutcome, findSurplus, outcomeOf, settleOutcomes } from '../../schema/slot/decide/revisions.ts';
import { REVISION_OUTCOMES, UNKNOWN_AUTHOR, type Author, type Revision, type RevisionStore } from '../../schema/slot/revision-store.ts';
import type { SlotStatus } from '../../schema/status/slot-status.ts';
import { SlotName } from '../../schema/words/names.ts';
import { isAbsent, messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import { LARGE_TEXT_BYTES, readRegularFile, SYSTEM_DISK, type Disk } from '../../files/regular-file.ts';
import { createWriteLog, listDirectory, makeSubdirectory, writeJsonAtomically } from '../../files/write-file.ts';
import type { AcceptedSlot, AcceptedSlots } from './decide/parse-slot-text.ts';
import { versionOf } from './toml-editor.ts';

export interface RevisionFilesOptions {
  /** `<state>/revisions`. */
  readonly directory: string;
  /** Revisions of a slot that are kept. */
  readonly most: number;
  readonly log: SourceLog;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Default: the system's. */
  readonly disk?: Disk;
}

/** Documents may contain tokens in `env`. */
const MODES = { mode: 0o600, directoryMode: 0o700 } as const;
/** Concurrent writes. The journal of the disk takes several syncs together. */
const AT_ONCE = 32;

const StoredRevision = z.object({
  /** Another one: written by a later version. */
  format: z.literal(1),
  number: z.int().min(1),
  at: z.number(),
  who: z.string(),
  undoOf: z.int().optional(),
  outcome: z.enum(REVISION_OUTCOMES),
  document: z.record(z.string(), z.unknown()),
});

/** The newest revision of a slot. */
interface Newest {
  revision: Revision;
  /** Whether a file of an earlier run may have more to say of it. */
  isRead: boolean;
  readonly resourceVersion: string;
  /** The last status that was looked at. */
  status: SlotStatus | undefined;
}

/** What is not written yet. */
interface Backlog {
  /** The slot was removed: what is stored belongs to another one of its name. */
  isCleared: boolean;
  readonly revisions: Map<number, Revision>;
}

export type RevisionFiles = ReturnType<typeof createRevisionFiles>;

export function createRevisionFiles({ directory, most, log, wallNow, disk = SYSTEM_DISK }: RevisionFilesOptions) {
  const newest = new Map<SlotName, Newest>();
  const seen = new Map<SlotName, AcceptedSlot>();
  /** Authors of texts that no pass has read yet. */
  const authors = new Map<SlotName, { readonly resourceVersion: string; readonly author: Author }>();
  const waiting = new Map<SlotName, Backlog>();
  const writes = createWriteLog(log);
  let working: Promise<void> | undefined;
  let sweeping: Promise<void> | undefined;

  const { fileOf, numbersOf, read } = createReader({ directory, log, disk });

  function keep(slot: SlotName, revision: Revision): void {
    const backlog = waiting.get(slot) ?? { isCleared: false, revisions: new Map<number, Revision>() };
    backlog.revisions.set(revision.number, revision);
    waiting.set(slot, backlog);
  }

  /** What an earlier run knew of the same revision. */
  async function recall(slot: SlotName, found: Newest): Promise<void> {
    if (found.isRead) return;
    const { number, outcome } = found.revision;
    const stored = await read(slot, number);
    found.isRead = true;
    if (stored === undefined || found.revision.number !== number) return;
    found.revision = { ...stored, outcome: betterOutcome(stored.outcome, outcome) };
    if (found.revision.outcome === stored.outcome) waiting.get(slot)?.revisions.delete(number);
    else keep(slot, found.revision);
  }

  async function writeSlot(slot: SlotName, backlog: Backlog): Promise<void> {
    const { revisions } = backlog;
    if (backlog.isCleared) await disk.rm(join(directory, slot), { recursive: true, force: true });
    backlog.isCleared = false;
    const found = newest.get(slot);
    if (found !== undefined) await recall(slot, found);
    for (const [number, revision] of revisions) {
      await makeSubdirectory(directory, MODES.directoryMode, disk);
      await makeSubdirectory(join(directory, slot), MODES.directoryMode, disk);
      await writeJsonAtomically(fileOf(slot, number), { format: 1, ...revision }, MODES.mode, { sync: true, disk });
      if (revisions.get(number) === revision) revisions.delete(number);
      writes.succeeded(directory);
    }
    // Something was added or removed meanwhile.
    if (revisions.size > 0 || waiting.get(slot) !== backlog) return;
    waiting.delete(slot);
    for (const number of findSurplus(await numbersOf(slot), most)) await disk.rm(fileOf(slot, number), { force: true });
  }

  async function drain(): Promise<void> {
    const failed = new Set<SlotName>();
    const left = () => [...waiting].filter(([slot]) => !failed.has(slot)).slice(0, AT_ONCE);
    for (let some = left(); some.length > 0; some = left())
      await Promise.all(
        some.map(async ([slot, backlog]) => {
          await writeSlot(slot, backlog).catch((error: unknown) => {
            failed.add(slot);
            writes.failed(`the history of slot "${slot}"`, join(directory, slot), error);
          });
        }),
      );
    working = undefined;
  }

  const resume = (): void => {
    // Without work, `drain` would reset `working` before it is assigned here.
    if (waiting.size > 0) working ??= drain();
  };

  function accept(slot: SlotName, { generation: number, lastGood, paused, rollout }: AcceptedSlot, text = ''): void {
    // A paused text is not in force, and what is in force has a revision already.
    if (lastGood === undefined || paused !== undefined || newest.get(slot)?.revision.number === number) return;
    const resourceVersion = versionOf(text);
    const noted = authors.get(slot);
    const author = noted?.resourceVersion === resourceVersion ? noted.author : UNKNOWN_AUTHOR;
    const revision: Revision = {
      number,
      at: wallNow(),
      ...author,
      outcome: 'pending',
      document: (rollout?.rolledBack ?? lastGood).document,
    };
    newest.set(slot, { revision, isRead: newest.has(slot), resourceVersion, status: undefined });
    authors.delete(slot);
    keep(slot, revision);
  }

  function forget(slot: SlotName): void {
    newest.delete(slot);
    seen.delete(slot);
    authors.delete(slot);
    waiting.set(slot, { isCleared: true, revisions: new Map() });
  }

  /** Those of slots that were removed while the service did not run. */
  async function sweep(slots: AcceptedSlots): Promise<void> {
    const known = await listDirectory(directory, disk).catch((): string[] => []);
    for (const name of known.flatMap((each) => SlotName.safeParse(each).data ?? []))
      if (slots.get(name)?.lastGood === undefined && !newest.has(name)) forget(name);
    resume();
  }

  return {
    /** Follows what is in force after a read of the slots. */
    follow(slots: AcceptedSlots, textOf: (slot: SlotName) => string | undefined): void {
      for (const [name, slot] of slots) {
        if (seen.get(name) === slot) continue;
        if (slot.lastGood === undefined && newest.has(name)) forget(name);
        else accept(name, slot, textOf(name));
        seen.set(name, slot);
      }
      sweeping ??= sweep(slots);
      resume();
    },
    /** Notes what became of the newest revisions. */
    write({ statuses }: Pick<Report, 'statuses'>): void {
      for (const status of statuses) {
        const found = newest.get(status.name);
        if (found === undefined || found.status === status) continue;
        found.status = status;
        const { revision } = found;
        const outcome = betterOutcome(revision.outcome, outcomeOf(status, revision.number));
        if (outcome === revision.outcome) continue;
        found.revision = { ...revision, outcome };
        keep(status.name, found.revision);
      }
      resume();
    },
    attribute(slot, resourceVersion, author): void {
      const found = newest.get(slot);
      if (found === undefined || found.resourceVersion !== resourceVersion || found.revision.who !== UNKNOWN_AUTHOR.who) {
        authors.set(slot, { resourceVersion, author });
        return;
      }
      found.revision = { ...found.revision, ...author };
      keep(slot, found.revision);
      resume();
    },
    async list(slot) {
      await working;
      const revisions = new Map<number, Revision>();
      const numbers =
        waiting.get(slot)?.isCleared === true
          ? []
          : await numbersOf(slot).catch((error: unknown) => {
              log.warn({ slot, error: messageOf(error) }, `The history of slot "${slot}" cannot be read`);
              return [];
            });
      const stored = await Promise.all(numbers.map(async (number) => await read(slot, number)));
      for (const revision of [...stored, ...(waiting.get(slot)?.revisions.values() ?? [])])
        if (revision !== undefined) revisions.set(revision.number, revision);
      return settleOutcomes([...revisions.values()]).slice(-most);
    },
    /** Resolves when all pending writes are done or have failed. */
    async flush(): Promise<void> {
      await sweeping;
      while (working !== undefined) await working;
    },
  } satisfies RevisionStore & StatusSink & { readonly follow: unknown; readonly flush: unknown };
}

function createReader({ directory, log, disk }: Pick<RevisionFilesOptions, 'directory' | 'log'> & { readonly disk: Disk }) {
  /** Each bad file is named once. */
  const named = new Set<string>();
  const fileOf = (slot: SlotName, number: number): string => join(directory, slot, `${number}.json`);

  async function read(slot: SlotName, number: number): Promise<Revision | undefined> {
    const file = fileOf(slot, number);
    try {
      const text = await readRegularFile(file, { mostBytes: LARGE_TEXT_BYTES, disk });
      const { format: _format, ...revision } = StoredRevision.parse(JSON.parse(text));
      return revision;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      if (!named.has(file))
        log.warn({ slot, file, error: messageOf(error) }, `"${file}" is damaged or of a later version, and is left out`);
      named.add(file);
      return undefined;
    }
  }

  const numbersOf = async (slot: SlotName): Promise<readonly number[]> =>
    (await listDirectory(join(directory, slot), disk)).flatMap((file) => Number(/^([1-9][0-9]*)\.json$/.exec(file)?.[1] ?? []));

  return { fileOf, numbersOf, read };
}
