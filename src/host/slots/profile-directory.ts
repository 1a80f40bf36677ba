/**
 * Saves, compares and applies the profiles of a host. `decide/plan-switch.ts` decides; files are read again for each
 * request.
 */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { createTextFileMemory } from '../../files/read-text-file.ts';
import { explainWriteError, ifThere } from '../../files/write-file.ts';
import { shareRuns } from '../../platform/semaphore.ts';
import { createBreather } from '../../platform/slices.ts';
import { SlotName, type ProfileName } from '../../schema/words/names.ts';
import type { Profile, ProfileStore, ProfileSummary, SavedProfile, SaveOptions } from '../../schema/slot/profile-store.ts';
import type { SlotTextEditor } from '../../schema/slot/slot-editor.ts';
import type { SpecProblem } from '../../schema/slot/spec-problem.ts';
import { rewriteSlotText } from './decide/edit-slot.ts';
import { parseSlotText } from './decide/parse-slot-text.ts';
import { planSwitch, type FoundText, type FoundTexts, type PlannedSwitch } from './decide/plan-switch.ts';
import { createProfileFiles, MOST_PROFILES, type NewText } from './profile-files.ts';
import { readSlotFiles } from './slot-files.ts';

export interface ProfileStoreOptions {
  /** `<config>/profiles`; it need not exist yet. */
  readonly directory: string;
  /** `<config>/slots`. */
  readonly slotsDirectory: string;
  readonly editor: SlotTextEditor;
  /** Same as for slots. */
  readonly quietPeriodMs: number;
}

/** Mode of new files. */
const FILE_MODE = 0o640;

export function createProfileStore({ directory, slotsDirectory, editor, quietPeriodMs }: ProfileStoreOptions): ProfileStore {
  const files = createProfileFiles(directory);
  const readSlots = createSlotReader(slotsDirectory, quietPeriodMs);
  const explain = (error: unknown) => `Changing the profiles in "${directory}" failed: ${explainWriteError(directory, error)}`;

  const plan = async (name: ProfileName, present: FoundTexts): Promise<(PlannedSwitch & Profile) | undefined> => {
    const found = await files.read(name);
    if (found === undefined) return undefined;
    const planned = planSwitch(found.texts, present);
    const { problems } = found;
    return { name, ...planned, ...(problems.length === 0 ? {} : { problems: [...problems, ...planned.problems], edits: [] }) };
  };

  return {
    async list() {
      const [{ names, problems }, present] = await Promise.all([files.names(), readSlots()]);
      const breathe = createBreather();
      const profiles: ProfileSummary[] = [];
      for (const name of names) {
        const planned = await plan(name, present);
        if (planned !== undefined)
          profiles.push({ ...withoutEdits(planned), slots: planned.slots.map(({ name: slot, change }) => ({ name: slot, change })) });
        await breathe();
      }
      return { profiles, problems };
    },
    async read(name) {
      const planned = await plan(name, await readSlots());
      return planned && withoutEdits(planned);
    },
    async save(name, options = {}) {
      try {
        const texts = await textsToSave(readSlots, options);
        if ('kind' in texts) return texts;
        const saved = await files.write(name, texts.texts, (existing) => refuseSave(name, existing, options));
        return 'kind' in saved ? saved : { kind: 'saved', created: saved.created };
      } catch (error) {
        return { kind: 'failed', message: explain(error) };
      }
    },
    async remove(name) {
      try {
        return (await files.remove(name)) ? 'removed' : 'not-found';
      } catch (error) {
        return { failure: explain(error) };
      }
    },
    async apply(name, { ifMatch } = {}) {
      const planned = await plan(name, await readSlots());
      if (planned === undefined) return { kind: 'not-found' };
      if (ifMatch !== undefined && ifMatch !== planned.resourceVersion) return { kind: 'conflict' };
      if (planned.problems.length > 0) return { kind: 'invalid', problems: planned.problems };
      const put = await editor.putTexts(planned.edits);
      if (put.kind === 'failed' || put.kind === 'managed') return put;
      return put.kind === 'conflict' ? { kind: 'conflict' } : { kind: 'applied', profile: withoutEdits(planned) };
    },
  };
}

const withoutEdits = ({ name, slots, problems, resourceVersion }: Profile): Profile => ({ name, slots, problems, resourceVersion });

function refuseSave(name: ProfileName, existing: ReadonlySet<string>, { onlyNew }: SaveOptions): SavedProfile | undefined {
  if (existing.has(name)) return onlyNew === true ? { kind: 'exists' } : undefined;
  return existing.size >= MOST_PROFILES ? { kind: 'full', limit: MOST_PROFILES } : undefined;
}

type Saveable = { readonly texts: ReadonlyMap<SlotName, NewText> } | Extract<SavedProfile, { kind: 'invalid' }>;

/** Saves only valid texts, so that a profile works when it is needed in a hurry. */
async function textsToSave(readSlots: ReadSlots, { documents }: SaveOptions): Promise<Saveable> {
  const texts = new Map<SlotName, NewText>();
  const problems: SpecProblem[] = [];
  if (documents === undefined) {
    for (const [name, found] of await readSlots()) {
      const parsed = found.kind === 'text' ? parseSlotText(name, found.text, found.path) : undefined;
      if (found.kind === 'unreadable') problems.push({ ...found, path: [], file: found.path });
      else if (parsed?.ok === false) problems.push(...parsed.problems);
      else texts.set(name, { text: found.text, mode: await modeOf(found.path) });
    }
  } else {
    for (const [name, document] of documents) {
      const written = rewriteSlotText('', document);
      const parsed = written.ok ? parseSlotText(name, written.text, `${name}.toml`) : written;
      if (!written.ok || !parsed.ok) problems.push(...(parsed.ok ? [] : parsed.problems));
      else texts.set(name, { text: written.text, mode: FILE_MODE });
    }
  }
  if (problems.length > 0) return { kind: 'invalid', problems };
  const empty = 'A profile without slots would disable every slot; create a slot first';
  return texts.size === 0 ? { kind: 'invalid', problems: [{ path: [], message: empty }] } : { texts };
}

/** A copy is not more readable than its original. */
async function modeOf(file: string): Promise<number> {
  return (await stat(file)).mode & 0o777;
}

type ReadSlots = () => Promise<FoundTexts>;

/**
 * Reads after the quiet period, so that no half-written file is saved or compared. Throws the system's error if the
 * directory cannot be listed; a missing one has no slots.
 */
function createSlotReader(directory: string, quietPeriodMs: number): ReadSlots {
  const reading = { quietPeriodMs, expected: [], memory: createTextFileMemory() };
  return shareRuns(async () => {
    const found = new Map<SlotName, FoundText>();
    const files = await ifThere(readSlotFiles(directory, reading, new AbortController().signal));
    for (const [fileName, file] of files ?? []) {
      // The loop reports files with invalid names.
      const name = SlotName.safeParse(fileName.slice(0, -'.toml'.length));
      if (name.success) found.set(name.data, { path: path.join(directory, fileName), ...file });
    }
    return found;
  });
}
