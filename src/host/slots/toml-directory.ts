/**
 * Reads desired state from `<config>/slots/*.toml`; the file name is the name of the slot. A deleted file removes the
 * slot; an invalid one keeps its last good spec. Each read covers the whole directory, so a lost event costs only time;
 * unchanged slots are the same objects as before.
 */
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Clock, DesiredState, SlotSource } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { chooseText } from '../../schema/slot/paused-text.ts';
import { parseSlot, type SpecProblem } from '../../schema/slot/slot-spec.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { recallRollout, storedRollout, type Settlement } from '../../evaluation/decide/rollout-state.ts';
import { createCheckFiles } from './check-files.ts';
import {
  acceptSlots,
  parseSlotText,
  settleSlot,
  type AcceptedSlots,
  type AcceptedSlot,
  type ParsedSlotText,
} from './decide/parse-slot-text.ts';
import { readSlotFiles, type SlotFiles } from './slot-files.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import { createTextFileMemory, type TextFileMemoryOptions, type TextFile } from '../../files/read-text-file.ts';
import { LARGE_TEXT_BYTES, readRegularFile, SYSTEM_DISK, type Disk } from '../../files/regular-file.ts';
import { watchDirectory, type WatchDirectoryOptions } from '../../files/watch-directory.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { FailureRecords } from '../../schema/status/slot-status.ts';
import { createWriteLog, listDirectory, syncDirectory, writeJsonAtomically } from '../../files/write-file.ts';
import { createBreather, type Breather } from '../../platform/slices.ts';

/** `directory` is `<config>/slots`; it need not exist yet. */
export interface TomlDirectoryOptions extends WatchDirectoryOptions {
  /** `<state>/slots`. */
  readonly lastGoodDirectory: string;
  /** Called after each read with what is in force, and the text of each slot. */
  readonly accepted?: (slots: AcceptedSlots, textOf: (slot: SlotName) => string | undefined) => void;
  /** What statuses of an earlier run tell, in case a last good spec is lost. */
  readonly records?: FailureRecords;
  /** Default: the system's. */
  readonly disk?: Disk;
  readonly clock?: Clock;
  /** Default: the system's files and clocks. */
  readonly reading?: TextFileMemoryOptions;
  readonly parsing?: SlotFileParserOptions;
}

export function createTomlDirectory(options: TomlDirectoryOptions): SlotSource {
  const { directory, quietPeriodMs, log, disk, clock } = options;
  const lastGood = createLastGoodSlots(options);
  const lock = createKeyedLock();
  const memory = createTextFileMemory(options.reading);
  const parseFiles = createSlotFileParser(directory, options.parsing);
  const checkFiles = createCheckFiles({ ...options, configDirectory: dirname(directory) });
  /** Settlements since the last read, by slot. */
  const settlements: [SlotName, Settlement][] = [];
  let accepted: AcceptedSlots | undefined;
  let slots: DesiredState['slots'] = new Map();
  let loggedProblems: readonly SpecProblem[] = [];

  const read = async (signal: AbortSignal): Promise<Result<DesiredState>> => {
    let found: SlotFiles;
    try {
      accepted ??= await lastGood.read(signal);
      const expected = [...accepted].flatMap(([name, slot]) => (slot.lastGood === undefined ? [] : [`${name}.toml`]));
      found = await readSlotFiles(directory, { quietPeriodMs, expected, memory, disk, clock }, signal);
    } catch (error) {
      signal.throwIfAborted();
      return fallBackToLastGood(directory, accepted ?? new Map(), error);
    }
    const before = accepted;
    const { parsed: texts, problems } = await parseFiles(found);
    const parsed = await checkFiles.complete(texts, found);
    const { accepted: after, ...state } = acceptSlots({ accepted: settleAll(before, settlements.splice(0)), slots }, parsed);
    await lastGood.write(before, after, parsed);
    accepted = after;
    options.accepted?.(after, (name) => {
      const file = found.get(`${name}.toml`);
      return file?.kind === 'text' ? file.text : undefined;
    });
    slots = state.slots;
    const all = [...problems, ...[...parsed.values()].flatMap((text) => (text.ok ? [] : text.problems))];
    if (!isSameValue(all, loggedProblems)) for (const problem of all) log.warn({ file: problem.file }, formatProblem(problem));
    loggedProblems = all;
    return ok({ ...state, problems });
  };

  return {
    // Serialized: concurrent reads could give one generation to two specs.
    read: async (signal) => await lock(directory, async () => await read(signal)),
    changes(wake, signal) {
      watchDirectory(options, () => wake(), signal);
      checkFiles.watch(() => wake(), signal);
    },
    settle: (slot, settlement) => void settlements.push([slot, settlement]),
  };
}

function settleAll(slots: AcceptedSlots, settlements: readonly (readonly [SlotName, Settlement])[]): AcceptedSlots {
  if (settlements.length === 0) return slots;
  const settled = new Map(slots);
  for (const [name, settlement] of settlements) {
    const slot = settled.get(name);
    if (slot !== undefined) settled.set(name, settleSlot(slot, settlement));
  }
  return settled;
}

/**
 * A missing directory is usually a failed mount or checkout, so each slot keeps its last good spec and reports the
 * problem. To remove all slots, empty the directory.
 */
function fallBackToLastGood(directory: string, accepted: AcceptedSlots, error: unknown): Result<DesiredState> {
  const isMissing = codeOf(error) === 'ENOENT';
  const message = isMissing
    ? `The directory "${directory}" is missing, and its slots keep their last good specs; create it again (an empty one removes them)`
    : `The directory "${directory}" cannot be read: ${messageOf(error)}`;
  const slots: DesiredState['slots'] = new Map(
    [...accepted].flatMap(([name, { generation, lastGood }]) => {
      const problems = [{ path: [], file: join(directory, `${name}.toml`), message }];
      return lastGood === undefined ? [] : [[name, { name, spec: lastGood.spec, generation, problems }]];
    }),
  );
  if (slots.size > 0) return ok({ slots, refused: new Map(), problems: [{ path: [], file: directory, message }] });
  return isMissing ? ok({ slots, refused: new Map(), problems: [] }) : fail('retry', 'SlotsUnreadable', message);
}

/** Stored instead of the resolved spec, because later versions may have other defaults. */
const StoredSlot = z.object({
  generation: z.int().min(1),
  document: z.unknown(),
  paused: z.unknown().optional(),
  rollout: z.unknown().optional(),
});

/** Concurrent writes. The journal of the disk takes several syncs together. */
const AT_ONCE = 32;

/**
 * Stores the last good document and generation of each slot in `<state>/slots/<name>.json`, for invalid edits after a
 * restart. The copy beside it serves where the first is empty or torn, as disks leave them that lose power.
 */
function createLastGoodSlots({ lastGoodDirectory: directory, records, disk = SYSTEM_DISK, log }: TomlDirectoryOptions) {
  const unwritten = new Set<SlotName>();
  const writes = createWriteLog(log);
  const filesOf = (name: SlotName) => [join(directory, `${name}.json`), join(directory, `${name}.json~`)] as const;

  const write = async (name: SlotName, { generation, lastGood, paused, rollout }: AcceptedSlot): Promise<void> => {
    const replace = async (file: string): Promise<void> => {
      if (lastGood === undefined) return await disk.rm(file, { force: true });
      const stored = { generation, document: lastGood.document, paused: paused?.document, rollout: rollout && storedRollout(rollout) };
      await writeJsonAtomically(file, stored, 0o600, { sync: 'file', disk });
    };
    try {
      await Promise.all(filesOf(name).map(replace));
      unwritten.delete(name);
    } catch (error) {
      unwritten.add(name);
      writes.failed(`the last good spec of slot "${name}"`, filesOf(name)[0], error);
    }
  };

  /** Programs have seen the generation in its status. */
  const observedSlot = async (name: SlotName, signal: AbortSignal): Promise<AcceptedSlot | undefined> => {
    const generation = (await records?.read(signal))?.get(name)?.observedGeneration;
    return generation === undefined ? undefined : { generation, lastGood: undefined };
  };

  return {
    async read(signal: AbortSignal): Promise<AcceptedSlots> {
      const slots = new Map<SlotName, AcceptedSlot>();
      // A killed controller may have renamed files and not have synced them, and programs will see their generations.
      const isLasting = await syncDirectory(directory, disk);
      for (const file of new Set((await listDirectory(directory, disk)).map((each) => each.replace(/~$/, '')))) {
        const name = SlotName.safeParse(/^(.*)\.json$/.exec(file)?.[1]).data;
        if (name === undefined) continue;
        const [first, copy] = await Promise.all(filesOf(name).map(async (each) => await readSlot(each, name, log, disk)));
        const newest = (copy?.generation ?? 0) > (first?.generation ?? 0) ? copy : first;
        if (!isLasting || newest === undefined || !isSameSlot(first, newest) || !isSameSlot(copy, newest)) unwritten.add(name);
        const slot = newest ?? (await observedSlot(name, signal));
        if (slot !== undefined) slots.set(name, slot);
      }
      return slots;
    },
    /** Writes changed slots, before anybody learns of them, and what could not be written by earlier calls. */
    async write(before: AcceptedSlots, after: AcceptedSlots, declared: ReadonlyMap<SlotName, unknown>): Promise<void> {
      const isChanged = (name: SlotName, slot: AcceptedSlot) => unwritten.has(name) || !isSameSlot(before.get(name), slot);
      const isKnown = (name: SlotName, { lastGood }: AcceptedSlot) => lastGood !== undefined || !declared.has(name);
      const changed = [...after].filter((entry) => isChanged(...entry) && isKnown(...entry));
      if (changed.length === 0) return;
      for (let from = 0; from < changed.length; from += AT_ONCE)
        await Promise.all(changed.slice(from, from + AT_ONCE).map(async (entry) => await write(...entry)));
      if (!(await syncDirectory(directory, disk))) for (const [name] of changed) unwritten.add(name);
      if (changed.every(([name]) => !unwritten.has(name)) && changed.some(([, slot]) => slot.lastGood !== undefined))
        writes.succeeded(directory);
    },
  };
}

function isSameSlot(left: AcceptedSlot | undefined, right: AcceptedSlot): boolean {
  if (left?.generation !== right.generation || !isSameValue(left.lastGood?.document, right.lastGood?.document)) return false;
  if (!isSameValue(left.paused?.document, right.paused?.document)) return false;
  return isSameValue(left.rollout && storedRollout(left.rollout), right.rollout && storedRollout(right.rollout));
}

async function readSlot(path: string, name: SlotName, log: SourceLog, disk: Disk): Promise<AcceptedSlot | undefined> {
  try {
    const stored = StoredSlot.parse(JSON.parse(await readRegularFile(path, { mostBytes: LARGE_TEXT_BYTES, disk })));
    const parse = (document: unknown) => {
      const parsed = parseSlot(name, document);
      return parsed.ok && isTable(document) ? { spec: parsed.spec, document } : undefined;
    };
    const [lastGood, newest] = [stored.document, stored.paused].map(parse);
    const paused = lastGood && newest && chooseText(lastGood, newest).paused;
    return { generation: stored.generation, lastGood, paused, rollout: lastGood && recallRollout(stored.rollout, parse) };
  } catch (error) {
    // Without what is stored, the generation would begin again.
    if (!['', 'ENOENT'].includes(codeOf(error))) throw error;
    if (codeOf(error) === '')
      log.warn({ slot: name, error: messageOf(error) }, `The last good spec of slot "${name}" in "${path}" is damaged and ignored`);
    return undefined;
  }
}

type ParsedFile = { readonly file: TextFile } & (
  | { readonly name: SlotName; readonly parsed: ParsedSlotText }
  | { readonly name: undefined; readonly problem: SpecProblem }
);

interface SlotFileParserOptions {
  readonly parse?: typeof parseSlotText;
  readonly breather?: () => Breather;
}

/**
 * Parses each text once. The returned function must not run concurrently. Yields between slices, so that requests are
 * served.
 */
export function createSlotFileParser(directory: string, { parse = parseSlotText, breather = createBreather }: SlotFileParserOptions = {}) {
  let last: ReadonlyMap<string, ParsedFile> = new Map();
  /** `problems`: those with file names. */
  return async (files: SlotFiles) => {
    const breathe = breather();
    const next = new Map<string, ParsedFile>();
    for (const [fileName, file] of files) {
      const known = last.get(fileName);
      if (known?.file === file) next.set(fileName, known);
      else {
        next.set(fileName, parseFile(join(directory, fileName), { fileName, file, parse }));
        await breathe();
      }
    }
    last = next;
    const parsed = new Map<SlotName, ParsedSlotText>();
    const problems: SpecProblem[] = [];
    for (const each of next.values())
      if (each.name === undefined) problems.push(each.problem);
      else parsed.set(each.name, each.parsed);
    return { parsed, problems };
  };
}

interface FoundFile {
  readonly fileName: string;
  readonly file: TextFile;
  readonly parse: typeof parseSlotText;
}

function parseFile(path: string, { fileName, file, parse }: FoundFile): ParsedFile {
  const name = SlotName.safeParse(fileName.slice(0, -'.toml'.length));
  if (!name.success) {
    const message = `The file name is not the name of a slot; rename it. ${name.error.issues[0]?.message ?? ''}`;
    return { file, name: undefined, problem: { path: [], file: path, line: 1, column: 1, message } };
  }
  if (file.kind === 'text') return { file, name: name.data, parsed: parse(name.data, file.text, path) };
  const { message, line, column } = file;
  return { file, name: name.data, parsed: { ok: false, document: undefined, problems: [{ path: [], file: path, line, column, message }] } };
}
