/**
 * Edits `<config>/slots/*.toml`: validates each text, writes it atomically, and keeps comments and order. Edits the
 * target of a symbolic link. Files mounted by Kubernetes cannot be edited.
 */
import { createHash } from 'node:crypto';
import { lstat, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, join, dirname } from 'node:path';
import { SlotName } from '../../schema/words/names.ts';
import type {
  EditOptions,
  EditResult,
  SlotEditor,
  SlotTextEditor,
  StoredSlot,
  TextEdit,
  TextEdits,
} from '../../schema/slot/slot-editor.ts';
import { patchSlotText, rewriteSlotText, type EditedText } from './decide/edit-slot.ts';
import { parseSlotText } from './decide/parse-slot-text.ts';
import { isSlotFileName } from './slot-files.ts';
import { createTextFileMemory, readTextFile, type TextFileMemoryOptions } from '../../files/read-text-file.ts';
import type { Disk } from '../../files/regular-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import { createKeyedLock, inTurns, shareRuns, type KeyedLock } from '../../platform/semaphore.ts';
import {
  explainWriteError,
  writeFileAtomically,
  stageFile,
  syncDirectory,
  type WriteOptions,
  type StagedFile,
} from '../../files/write-file.ts';

/** New files may contain tokens in `[env]`. */
const NEW_FILE: WriteOptions = { mode: 0o640, sync: true };

interface TomlEditorOptions {
  readonly directory: string;
  readonly disk?: Disk;
  /** Default: the system's files and clocks. */
  readonly reading?: TextFileMemoryOptions;
}

export function createTomlEditor(options: TomlEditorOptions): SlotEditor & SlotTextEditor {
  const { directory } = options;
  const lock = createKeyedLock();
  const pathOf = (name: SlotName) => join(directory, `${name}.toml`);
  /** As last listed: reading and parsing thousands of files again takes seconds. */
  let listed: ReadonlyMap<SlotName, StoredSlot> = new Map();
  const memory = createTextFileMemory(options.reading);
  const explain = (name: SlotName, error: unknown) =>
    `Writing the file of slot "${name}" failed: ${explainWriteError(pathOf(name), error)}`;

  const locked = async (name: SlotName, work: () => Promise<EditResult>): Promise<EditResult> =>
    await lock(name, work).catch((error: unknown): EditResult => ({ kind: 'failed', message: explain(name, error) }));

  const read = async (name: SlotName): Promise<StoredSlot | undefined> => {
    const text = await readText(pathOf(name)).catch(() => undefined);
    return text === undefined ? undefined : storedSlot(name, text);
  };
  const readListed = async (name: SlotName): Promise<readonly StoredSlot[]> => {
    const { file } = (await memory.read(pathOf(name))) ?? {};
    if (file?.kind !== 'text') return [];
    const known = listed.get(name);
    return [known?.text === file.text ? known : storedSlot(name, file.text)];
  };

  const change = async (name: SlotName, edit: (present: string | undefined) => EditedText | undefined, edits: EditOptions) =>
    await locked(name, async () => {
      const text = await readText(pathOf(name));
      const refused = checkVersion(text, edits);
      if (refused !== undefined) return refused;
      const edited = edit(text);
      if (edited === undefined) return { kind: 'not-found' };
      if (!edited.ok) return { kind: 'invalid', problems: edited.problems };
      const checked = parseSlotText(name, edited.text, '');
      // The position refers to an unsaved text.
      if (!checked.ok) return { kind: 'invalid', problems: checked.problems.map(({ path, message }) => ({ path, message })) };
      const done: EditResult = { kind: 'done', created: text === undefined, slot: storedSlot(name, edited.text) };
      if (edits.dryRun === true || edited.text === text) return done;
      return (await save(options, pathOf(name), text, edited.text)) ?? done;
    });

  return {
    // Each of fifty pages that open asks for thousands of files.
    list: shareRuns(async () => {
      const names = await listSlots(directory);
      const found = (await inTurns(names, readListed)).flat();
      memory.keepOnly(new Set(names.map(pathOf)));
      listed = new Map(found.map((slot) => [slot.name, slot]));
      return found;
    }),
    read,
    put: async (name, document, edits = {}) =>
      await change(
        name,
        (text) => (text === undefined && edits.ifMatch !== undefined ? undefined : rewriteSlotText(text ?? '', document, edits.text)),
        edits,
      ),
    patch: async (name, patch, edits = {}) =>
      await change(name, (text) => (text === undefined ? undefined : patchSlotText(text, patch)), edits),
    remove: async (name, edits = {}) =>
      await locked(name, async () => {
        const text = await readText(pathOf(name));
        if (text === undefined) return { kind: 'not-found' };
        const refused = checkVersion(text, edits) ?? (await checkMounted(directory, pathOf(name)));
        if (refused !== undefined) return refused;
        // Removes a link, not its target.
        if (edits.dryRun !== true) await rm(pathOf(name));
        return { kind: 'done', created: false, slot: storedSlot(name, text) };
      }),
    async putTexts(edits) {
      // A fixed order avoids deadlocks.
      const sorted = edits.toSorted((left, right) => (left.name < right.name ? -1 : 1));
      const names = sorted.map(({ name }) => name);
      return await holding(lock, names, async () => await stageAndCommit(directory, sorted, explain));
    },
  };
}

/** Undefined if the text was saved. */
async function save(options: TomlEditorOptions, path: string, before: string | undefined, text: string): Promise<EditResult | undefined> {
  const { directory, disk } = options;
  const located = await locateFile(directory, path, before !== undefined);
  if ('kind' in located) return located;
  // The lock does not stop text editors: compare again, as late as possible.
  const present = before === undefined ? undefined : await readText(located.target);
  if (present !== before) return { kind: 'conflict', resourceVersion: present === undefined ? '' : versionOf(present) };
  await writeFileAtomically(located.target, text, { ...located.options, disk });
  return undefined;
}

async function locateFile(
  directory: string,
  path: string,
  exists: boolean,
): Promise<{ readonly target: string; readonly options: WriteOptions } | Extract<EditResult, { kind: 'failed' }>> {
  const mounted = await checkMounted(directory, path);
  if (mounted !== undefined) return mounted;
  if (!exists) return { target: path, options: NEW_FILE };
  const target = await realpath(path);
  if (!basename(target).endsWith('.toml')) {
    return { kind: 'failed', message: `"${path}" is a link to "${target}", which is not a ".toml" file; edit it by hand` };
  }
  const facts = await stat(target);
  return { target, options: { mode: facts.mode & 0o7777, owner: { uid: facts.uid, gid: facts.gid }, sync: true } };
}

/**
 * A mounted ConfigMap or Secret is a directory of links through "..data", replaced at each update: edits would be lost.
 */
async function checkMounted(directory: string, path: string): Promise<Extract<EditResult, { kind: 'failed' }> | undefined> {
  const link = await lstat(path).catch(() => undefined);
  if (link?.isSymbolicLink() !== true) return undefined;
  const data = await lstat(join(directory, '..data')).catch(() => undefined);
  if (data === undefined) return undefined;
  return { kind: 'failed', message: `Files in "${directory}" are mounted and cannot be edited in place; edit the ConfigMap or Secret` };
}

function checkVersion(text: string | undefined, edits: EditOptions): EditResult | undefined {
  if (edits.ifMatch === undefined || text === undefined || edits.ifMatch === '*') return undefined;
  const resourceVersion = versionOf(text);
  return edits.ifMatch === resourceVersion ? undefined : { kind: 'conflict', resourceVersion };
}

function storedSlot(name: SlotName, text: string): StoredSlot {
  const read = parseSlotText(name, text, '');
  return { name, document: read.document, resourceVersion: versionOf(text), text };
}

export const versionOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

async function listSlots(directory: string): Promise<readonly SlotName[]> {
  const files = await readdir(directory).catch((): string[] => []);
  const names = files.filter(isSlotFileName).toSorted();
  return names.flatMap((file) => SlotName.safeParse(file.slice(0, -'.toml'.length)).data ?? []);
}

/** Undefined if the file does not exist. Throws if it cannot be read. */
async function readText(path: string): Promise<string | undefined> {
  const read = await readTextFile(path);
  if (read === undefined) return undefined;
  if (read.file.kind === 'unreadable') throw new Error(read.file.message);
  return read.file.text;
}

async function holding<T>(lock: KeyedLock, [name, ...rest]: readonly SlotName[], work: () => Promise<T>): Promise<T> {
  return name === undefined ? await work() : await lock(name, async () => await holding(lock, rest, work));
}

interface Staged {
  readonly edit: TextEdit;
  readonly target: string;
  readonly file: StagedFile;
}

type Explain = (name: SlotName, error: unknown) => string;

/** Writes texts of several slots together: all are on disk before the first is put in place. */
async function stageAndCommit(directory: string, edits: readonly TextEdit[], explain: Explain): Promise<TextEdits> {
  const staged: Staged[] = [];
  try {
    for (const edit of edits) {
      try {
        const located = await locateFile(directory, join(directory, `${edit.name}.toml`), edit.before !== undefined);
        if ('kind' in located) return located;
        staged.push({ edit, target: located.target, file: await stageFile(located.target, edit.text, located.options) });
      } catch (error) {
        if (codeOf(error) === 'ENOENT' && edit.before !== undefined) return { kind: 'conflict', name: edit.name };
        return { kind: 'failed', message: explain(edit.name, error) };
      }
    }
    // The lock does not stop text editors: compare as late as possible.
    const presents = await inTurns(staged, async ({ target }) => await readText(target).catch(() => null));
    const changed = staged.find(({ edit }, index) => presents[index] !== edit.before);
    if (changed !== undefined) return { kind: 'conflict', name: changed.edit.name };
    const failure = commitAll(staged, explain);
    for (const each of new Set(staged.map(({ target }) => dirname(target)))) await syncDirectory(each);
    return failure ?? { kind: 'done' };
  } finally {
    for (const { file } of staged) await file.discard();
  }
}

/** Synchronous, so that no pass of the loop reads a mix of new and old texts. */
function commitAll(staged: readonly Staged[], explain: Explain): TextEdits | undefined {
  const written: string[] = [];
  for (const { edit, file } of staged) {
    try {
      file.commit();
      written.push(`"${edit.name}"`);
    } catch (error) {
      const done = written.length === 0 ? '' : `; already written: ${written.join(', ')}`;
      return { kind: 'failed', message: `${explain(edit.name, error)}${done}` };
    }
  }
  return undefined;
}
