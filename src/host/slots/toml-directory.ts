/**
 * Desired state from `<config>/slots/*.toml`. A file's name is the slot's name; a deleted file removes the slot; a bad one keeps the
 * last good spec. Each reading takes the whole directory, so that a lost event costs nothing but time.
 */
import { join } from 'node:path';
import type { ChokidarOptions, FSWatcher } from 'chokidar';
import type { DesiredState, SlotSource } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { SlotName } from '../../schema/names.ts';
import { isSameValue } from '../../schema/same-value.ts';
import type { SpecProblem } from '../../schema/slot-spec.ts';
import { formatProblem } from '../../schema/spec-problem.ts';
import { acceptSlots, type AcceptedSlot } from './decide/accept-slots.ts';
import { readSlot, type ReadSlot } from './decide/read-slot.ts';
import { createLastGoodSlots } from './last-good-slots.ts';
import { readSlotFiles, type SlotFile, type SlotFiles } from './slot-files.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import { watchDirectory } from '../../files/watch-directory.ts';

export interface TomlDirectoryOptions {
  /** `<config>/slots`. It need not exist yet. */
  readonly directory: string;
  /** `<state>/slots`: where last good specs are kept. */
  readonly keepIn: string;
  readonly quietMs: number;
  readonly log: SourceLog;
  /** Chokidar's `watch`; tests give one that fails. */
  readonly watch?: (path: string, options: ChokidarOptions) => FSWatcher;
}

type Accepted = ReadonlyMap<SlotName, AcceptedSlot>;

export function createTomlDirectory(options: TomlDirectoryOptions): SlotSource {
  const { directory, quietMs, log } = options;
  const kept = createLastGoodSlots(options.keepIn, log);
  let accepted: Accepted | undefined;
  let said: readonly SpecProblem[] = [];
  let turn: Promise<unknown> = Promise.resolve();

  const readNow = async (signal: AbortSignal): Promise<Result<DesiredState>> => {
    const before = (accepted ??= await kept.read());
    const expected = [...before].flatMap(([name, slot]) => (slot.good === undefined ? [] : [`${name}.toml`]));
    let files: SlotFiles;
    try {
      files = await readSlotFiles(directory, { quietMs, expected }, signal);
    } catch (error) {
      signal.throwIfAborted();
      return withoutDirectory(directory, before, error);
    }
    const { read, problems } = readAll(directory, files);
    const { accepted: after, ...state } = acceptSlots(before, read);
    await kept.write(before, after);
    accepted = after;
    const all = [...problems, ...[...read.values()].flatMap((reading) => (reading.ok ? [] : reading.problems))];
    if (!isSameValue(all, said)) for (const problem of all) log.warn({ file: problem.file }, formatProblem(problem));
    said = all;
    return ok({ ...state, problems });
  };

  return {
    async read(signal) {
      // One after the other: two readings at once could give the same generation to two different specs.
      const reading = turn.then(async () => await readNow(signal));
      turn = reading.catch(() => undefined);
      return await reading;
    },
    changes(wake, signal) {
      watchDirectory(options, () => wake(), signal);
    },
  };
}

function readAll(directory: string, files: SlotFiles) {
  const read = new Map<SlotName, ReadSlot>();
  const problems: SpecProblem[] = [];
  for (const [file, content] of files) {
    const path = join(directory, file);
    const name = SlotName.safeParse(file.slice(0, -'.toml'.length));
    if (name.success) read.set(name.data, readOne(name.data, content, path));
    else problems.push({ path: [], file: path, line: 1, column: 1, message: `Rename this file. ${name.error.issues[0]?.message ?? ''}` });
  }
  return { read, problems };
}

function readOne(name: SlotName, file: SlotFile, path: string): ReadSlot {
  if (file.kind === 'text') return readSlot(name, file.text, path);
  const { message, line, column } = file;
  return { ok: false, document: undefined, problems: [{ path: [], file: path, line, column, message }] };
}

/**
 * A directory that vanished is a mount or a checkout gone wrong far more often than the wish to unload everything: each slot keeps
 * its last good spec and says so. To remove all slots, empty the directory.
 */
function withoutDirectory(directory: string, accepted: Accepted, error: unknown): Result<DesiredState> {
  const missing = codeOf(error) === 'ENOENT';
  const message = missing
    ? `Create the directory "${directory}" again; it is gone, and an empty one would remove all slots`
    : `Make the directory "${directory}" readable: ${messageOf(error)}`;
  const good = [...accepted].flatMap(([name, slot]) => (slot.good === undefined ? [] : [{ name, slot, spec: slot.good.spec }]));
  if (good.length === 0) {
    return missing ? ok({ slots: new Map(), refused: new Map(), problems: [] }) : fail('retry', 'SlotsUnreadable', message);
  }
  const problem: SpecProblem = { path: [], file: directory, message };
  const slots = good.map(
    ({ name, slot, spec }) =>
      [name, { name, spec, generation: slot.generation, problems: [{ ...problem, file: join(directory, `${name}.toml`) }] }] as const,
  );
  return ok({ slots: new Map(slots), refused: new Map(), problems: [problem] });
}
