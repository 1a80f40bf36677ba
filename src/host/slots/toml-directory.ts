/**
 * Reads desired state from `<config>/slots/*.toml`. The file name is the slot's name. A deleted file removes the slot; an invalid file falls back to the
 * last good spec. Each read covers the whole directory, so a lost event costs only time; what has not changed is neither read nor parsed again, and is the same object.
 */
import { join } from 'node:path';
import type { DesiredState, SlotSource } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import type { SpecProblem } from '../../schema/slot/slot-spec.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { acceptSlots, type AcceptedSlots } from './decide/accept-slots.ts';
import { createLastGoodSlots } from './last-good-slots.ts';
import { createSlotFileParser, type SlotFileParserOptions } from './parse-slot-files.ts';
import { readSlotFiles, type SlotFiles } from './slot-files.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { createKeyedLock } from '../../platform/keyed-lock.ts';
import { createTextFileMemory, type TextFileMemoryOptions } from '../../files/remember-text-files.ts';
import { watchDirectory, type WatchDirectoryOptions } from '../../files/watch-directory.ts';

/** `directory` is `<config>/slots`, which need not exist yet. */
export interface TomlDirectoryOptions extends WatchDirectoryOptions {
  /** `<state>/slots`. */
  readonly lastGoodDirectory: string;
  /** How files are read, and which clocks are asked. Default: the system's. */
  readonly reading?: TextFileMemoryOptions;
  readonly parsing?: SlotFileParserOptions;
}

export function createTomlDirectory(options: TomlDirectoryOptions): SlotSource {
  const { directory, quietPeriodMs, log } = options;
  const lastGood = createLastGoodSlots(options.lastGoodDirectory, log);
  const lock = createKeyedLock();
  const memory = createTextFileMemory(options.reading);
  const parseFiles = createSlotFileParser(directory, options.parsing);
  let accepted: AcceptedSlots | undefined;
  let slots: DesiredState['slots'] = new Map();
  let loggedProblems: readonly SpecProblem[] = [];

  const read = async (signal: AbortSignal): Promise<Result<DesiredState>> => {
    const before = (accepted ??= await lastGood.read());
    const expected = [...before].flatMap(([name, slot]) => (slot.lastGood === undefined ? [] : [`${name}.toml`]));
    let found: SlotFiles;
    try {
      found = await readSlotFiles(directory, { quietPeriodMs, expected, memory }, signal);
    } catch (error) {
      signal.throwIfAborted();
      return fallBackToLastGood(directory, before, error);
    }
    const { parsed, problems } = await parseFiles(found);
    const { accepted: after, ...state } = acceptSlots({ accepted: before, slots }, parsed);
    await lastGood.write(before, after);
    accepted = after;
    slots = state.slots;
    const all = [...problems, ...[...parsed.values()].flatMap((text) => (text.ok ? [] : text.problems))];
    if (!isSameValue(all, loggedProblems)) for (const problem of all) log.warn({ file: problem.file }, formatProblem(problem));
    loggedProblems = all;
    return ok({ ...state, problems });
  };

  return {
    // One read at a time: two concurrent ones could give the same generation to two different specs.
    read: async (signal) => await lock(directory, async () => await read(signal)),
    changes(wake, signal) {
      watchDirectory(options, () => wake(), signal);
    },
  };
}

/**
 * A missing directory is far more often a failed mount or checkout than a request to unload everything, so each slot keeps its last good spec and reports
 * the problem. To remove all slots, empty the directory.
 */
function fallBackToLastGood(directory: string, accepted: AcceptedSlots, error: unknown): Result<DesiredState> {
  const isMissing = codeOf(error) === 'ENOENT';
  const message = isMissing
    ? `Create the directory "${directory}" again: it is missing, and its slots keep their last good specs (an empty directory would remove them)`
    : `Make the directory "${directory}" readable: ${messageOf(error)}`;
  const slots: DesiredState['slots'] = new Map(
    [...accepted].flatMap(([name, { generation, lastGood }]) => {
      const problems = [{ path: [], file: join(directory, `${name}.toml`), message }];
      return lastGood === undefined ? [] : [[name, { name, spec: lastGood.spec, generation, problems }]];
    }),
  );
  if (slots.size > 0) return ok({ slots, refused: new Map(), problems: [{ path: [], file: directory, message }] });
  return isMissing ? ok({ slots, refused: new Map(), problems: [] }) : fail('retry', 'SlotsUnreadable', message);
}
