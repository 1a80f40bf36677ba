/** Writes the texts of several slots together: all are on the disk before the first is put in its place, and then they are put there at once. */
import { dirname } from 'node:path';
import { stageFile, syncDirectory, type StagedFile, type WriteOptions } from '../../files/write-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import type { KeyedLock } from '../../platform/keyed-lock.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { TextEdit, TextEdits } from '../../schema/slot/slot-editor.ts';

interface PutTextsDeps {
  /** Of each slot; other edits of it wait. */
  readonly lock: KeyedLock;
  /** Where the text of a slot is written. Throws the system's error. */
  locate(
    name: SlotName,
    before: string | undefined,
  ): Promise<{ readonly target: string; readonly options: WriteOptions } | { readonly kind: 'failed'; readonly message: string }>;
  /** Undefined if there is no file. Throws if it cannot be read. */
  readText(path: string): Promise<string | undefined>;
  /** Why a file could not be written, and what to do. */
  explain(name: SlotName, error: unknown): string;
}

export async function putTexts(edits: readonly TextEdit[], deps: PutTextsDeps): Promise<TextEdits> {
  // Always in the same order, so that two of these never wait for each other.
  const sorted = edits.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  return await holding(
    deps.lock,
    sorted.map(({ name }) => name),
    async () => await stageAndCommit(sorted, deps),
  );
}

async function holding<T>(lock: KeyedLock, [name, ...rest]: readonly SlotName[], work: () => Promise<T>): Promise<T> {
  return name === undefined ? await work() : await lock(name, async () => await holding(lock, rest, work));
}

interface Staged {
  readonly edit: TextEdit;
  readonly target: string;
  readonly file: StagedFile;
}

async function stageAndCommit(edits: readonly TextEdit[], deps: PutTextsDeps): Promise<TextEdits> {
  const staged: Staged[] = [];
  try {
    for (const edit of edits) {
      try {
        const located = await deps.locate(edit.name, edit.before);
        if ('kind' in located) return located;
        staged.push({ edit, target: located.target, file: await stageFile(located.target, edit.text, located.options) });
      } catch (error) {
        if (codeOf(error) === 'ENOENT' && edit.before !== undefined) return { kind: 'conflict', name: edit.name };
        return { kind: 'failed', message: deps.explain(edit.name, error) };
      }
    }
    // The lock does not stop a person with a text editor: compare as late as possible.
    const presents = await Promise.all(staged.map(async ({ target }) => await deps.readText(target).catch(() => null)));
    const changed = staged.find(({ edit }, index) => presents[index] !== edit.before);
    if (changed !== undefined) return { kind: 'conflict', name: changed.edit.name };
    const failure = commitAll(staged, deps);
    for (const directory of new Set(staged.map(({ target }) => dirname(target)))) await syncDirectory(directory);
    return failure ?? { kind: 'done' };
  } finally {
    for (const { file } of staged) await file.discard();
  }
}

/** Without a pause, so that no pass of the loop reads some of the new texts and some of the old ones. */
function commitAll(staged: readonly Staged[], { explain }: PutTextsDeps): TextEdits | undefined {
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
