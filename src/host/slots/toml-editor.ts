/**
 * Edits of `<config>/slots/*.toml`. Every text is checked before it is written, and written whole or not at all; comments and order
 * stay. Behind a symbolic link the file it points at is edited; what Kubernetes mounted cannot be, and says so.
 */
import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { SlotName } from '../../schema/names.ts';
import type { EditOptions, EditResult, SlotEditor, StoredSlot } from '../../schema/slot-editor.ts';
import type { SpecProblem } from '../../schema/slot-spec.ts';
import { patchSlotText, rewriteSlotText, type EditedText } from './decide/edit-slot.ts';
import { readSlot } from './decide/read-slot.ts';
import { isSlotFileName, readSlotFile } from './slot-files.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { writeFileAtomically, type WriteOptions } from '../../files/write-file.ts';

/** A new file may hold tokens in its `[env]`. */
const NEW_FILE: WriteOptions = { mode: 0o640, sync: true };

export function createTomlEditor(options: { readonly directory: string }): SlotEditor {
  const { directory } = options;
  const turns = new Map<SlotName, Promise<unknown>>();
  const pathOf = (name: SlotName) => join(directory, `${name}.toml`);

  /** Edits of one slot come one after the other. */
  const inTurn = async (name: SlotName, work: () => Promise<EditResult>): Promise<EditResult> => {
    const result = (turns.get(name) ?? Promise.resolve()).then(work).catch((error: unknown): EditResult => failed(name, error));
    turns.set(name, result);
    try {
      return await result;
    } finally {
      if (turns.get(name) === result) turns.delete(name);
    }
  };

  const change = async (name: SlotName, edit: (present: string | undefined) => EditedText | undefined, edits: EditOptions) =>
    await inTurn(name, async () => {
      const text = await readText(pathOf(name));
      const refused = checkVersion(text, edits);
      if (refused !== undefined) return refused;
      const edited = edit(text);
      if (edited === undefined) return { kind: 'not-found' };
      if (!edited.ok) return { kind: 'invalid', problems: edited.problems };
      const checked = readSlot(name, edited.text, '');
      if (!checked.ok) return { kind: 'invalid', problems: checked.problems.map(withoutPlace) };
      const done: EditResult = { kind: 'done', created: text === undefined, slot: storedSlot(name, edited.text) };
      if (edits.dryRun === true || edited.text === text) return done;
      return (await save(directory, pathOf(name), text, edited.text)) ?? done;
    });

  return {
    async list() {
      const names = (await listFiles(directory)).flatMap((file) => {
        const name = SlotName.safeParse(file.slice(0, -'.toml'.length));
        return name.success ? [name.data] : [];
      });
      const texts = await Promise.all(names.map(async (name) => ({ name, text: await readText(pathOf(name)).catch(() => undefined) })));
      return texts.flatMap(({ name, text }) => (text === undefined ? [] : [storedSlot(name, text)]));
    },
    async read(name) {
      const text = await readText(pathOf(name)).catch(() => undefined);
      return text === undefined ? undefined : storedSlot(name, text);
    },
    put: async (name, document, edits = {}) =>
      await change(
        name,
        (text) => (text === undefined && edits.ifMatch !== undefined ? undefined : rewriteSlotText(text ?? '', document)),
        edits,
      ),
    patch: async (name, patch, edits = {}) =>
      await change(name, (text) => (text === undefined ? undefined : patchSlotText(text, patch)), edits),
    remove: async (name, edits = {}) =>
      await inTurn(name, async () => {
        const text = await readText(pathOf(name));
        if (text === undefined) return { kind: 'not-found' };
        const refused = checkVersion(text, edits) ?? (await checkMounted(directory, pathOf(name)));
        if (refused !== undefined) return refused;
        // Of a symbolic link only the link goes.
        if (edits.dryRun !== true) await rm(pathOf(name));
        return { kind: 'done', created: false, slot: storedSlot(name, text) };
      }),
  };
}

/** Undefined: saved. */
async function save(directory: string, path: string, before: string | undefined, text: string): Promise<EditResult | undefined> {
  const mounted = await checkMounted(directory, path);
  if (mounted !== undefined) return mounted;
  if (before === undefined) {
    await mkdir(directory, { recursive: true });
    await writeFileAtomically(path, text, NEW_FILE);
    return undefined;
  }
  const target = await realpath(path);
  if (!basename(target).endsWith('.toml')) {
    return { kind: 'failed', message: `Edit "${target}" by hand: "${path}" is a link to it, and it is no ".toml" file` };
  }
  const facts = await stat(target);
  // Somebody with an editor open is not in our turns: look once more, as late as can be.
  const present = await readText(target);
  if (present !== before) return { kind: 'conflict', resourceVersion: present === undefined ? '' : versionOf(present) };
  await writeFileAtomically(target, text, { mode: facts.mode & 0o7777, owner: { uid: facts.uid, gid: facts.gid }, sync: true });
  return undefined;
}

/** A mounted ConfigMap or Secret is a directory of links through "..data", put there anew at each change: an edit would not last. */
async function checkMounted(directory: string, path: string): Promise<EditResult | undefined> {
  const link = await lstat(path).catch(() => undefined);
  if (link?.isSymbolicLink() !== true) return undefined;
  const data = await lstat(join(directory, '..data')).catch(() => undefined);
  if (data === undefined) return undefined;
  return { kind: 'failed', message: `Edit the ConfigMap or Secret that is mounted at "${directory}": its files cannot be edited here` };
}

function checkVersion(text: string | undefined, edits: EditOptions): EditResult | undefined {
  if (edits.ifMatch === undefined || text === undefined || edits.ifMatch === '*') return undefined;
  const resourceVersion = versionOf(text);
  return edits.ifMatch === resourceVersion ? undefined : { kind: 'conflict', resourceVersion };
}

function storedSlot(name: SlotName, text: string): StoredSlot {
  const read = readSlot(name, text, '');
  return { name, document: read.document, resourceVersion: versionOf(text) };
}

/** The text that a place would point at was never saved. */
function withoutPlace({ path, message }: SpecProblem): SpecProblem {
  return { path, message };
}

function versionOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

async function listFiles(directory: string): Promise<readonly string[]> {
  const files = await readdir(directory).catch((): string[] => []);
  return files.filter(isSlotFileName).toSorted();
}

/** Undefined: there is no such file. Throws what makes it unreadable. */
async function readText(path: string): Promise<string | undefined> {
  const read = await readSlotFile(path);
  if (read === undefined) return undefined;
  if (read.file.kind === 'unreadable') throw new Error(read.file.message);
  return read.file.text;
}

function failed(name: SlotName, error: unknown): EditResult {
  const code = codeOf(error);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return { kind: 'failed', message: `Let the service write the file of slot "${name}": ${messageOf(error)}` };
  }
  if (code === 'ENOSPC')
    return { kind: 'failed', message: `Free some space: the file of slot "${name}" could not be written, the disk is full` };
  return { kind: 'failed', message: `Writing the file of slot "${name}" failed: ${messageOf(error)}` };
}
