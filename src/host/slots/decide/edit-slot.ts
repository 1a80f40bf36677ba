/** Edits a slot's text as people would: only the changed keys, comments and order kept. Never throws. Pure. */
import { isTable, toSnakeCase } from '../../../schema/key-case.ts';
import type { SlotPatch } from '../../../schema/slot-editor.ts';
import type { SpecProblem } from '../../../schema/slot-spec.ts';
import { editToml } from '../../../files/toml/decide/edit-toml.ts';
import { mergePatch } from '../../../schema/merge-patch.ts';
import { readDocument, withoutMark } from './read-slot.ts';
import { formatToml, whyNotToml } from '../../../files/toml/decide/toml-text.ts';

export type EditedText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** Lays a merge patch (RFC 7396, keys in camelCase) over a text; `null` removes a key. */
export function patchSlotText(text: string, patch: SlotPatch): EditedText {
  const read = readDocument(text);
  if (!read.ok) return { ok: false, problems: [{ path: [], message: read.message, ...read.position }] };
  return rewriteSlotText(text, mergePatch(read.document, patch));
}

/** Makes a text mean `document` (keys in camelCase); a text that cannot be edited in place is written anew. */
export function rewriteSlotText(text: string, document: unknown): EditedText {
  const checked = checkWritable(document);
  if (!checked.ok) return checked;
  const plain = withoutMark(text);
  const edited = readDocument(plain).ok ? editToml(plain, checked.table, meaningOf) : undefined;
  if (edited === undefined) return { ok: true, text: formatToml(checked.table) };
  return { ok: true, text: text.slice(0, text.length - plain.length) + edited };
}

/** The text of a new file. */
export function newSlotText(document: unknown): EditedText {
  return rewriteSlotText('', document);
}

type Checked = { readonly ok: true; readonly table: Readonly<Record<string, unknown>> } | Extract<EditedText, { readonly ok: false }>;

function checkWritable(document: unknown): Checked {
  const wanted = toSnakeCase(mergePatch({}, document));
  if (!isTable(wanted)) return { ok: false, problems: [{ path: [], message: 'Write a table of keys and values' }] };
  const reason = whyNotToml(wanted);
  return reason === undefined ? { ok: true, table: wanted } : { ok: false, problems: [{ path: [], message: reason }] };
}

function meaningOf(text: string): unknown {
  const read = readDocument(text);
  return read.ok ? toSnakeCase(read.document) : undefined;
}
