/** Edits the text of a slot: only changed keys, with comments and order preserved. Never throws. Pure. */
import { isTable, toSnakeCase } from '../../../schema/words/key-case.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { mergePatch, type SlotPatch } from '../../../schema/slot/slot-editor.ts';
import type { SpecProblem } from '../../../schema/slot/slot-spec.ts';
import { editToml } from '../../../files/toml/decide/edit-toml.ts';
import { parseDocument, withoutByteOrderMark } from '../../../files/toml/decide/parse-document.ts';
import { formatToml, whyNotToml } from '../../../files/toml/decide/toml-text.ts';

export type EditedText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** Applies a merge patch (RFC 7396, camelCase keys); `null` removes a key. */
export function patchSlotText(text: string, patch: SlotPatch): EditedText {
  const parsed = parseDocument(text);
  if (!parsed.ok) return refused(parsed.message, parsed.position);
  return rewriteSlotText(text, mergePatch(parsed.document, patch));
}

/**
 * Changes a text to mean `document` (camelCase keys); empty for a new file. Replaces a text that cannot be edited in
 * place, or where `written` means the same.
 */
export function rewriteSlotText(text: string, document: unknown, written?: string): EditedText {
  const table = toSnakeCase(mergePatch({}, document));
  if (!isTable(table)) return refused('This is not a table; write keys and values');
  const reason = whyNotToml(table);
  if (reason !== undefined) return refused(reason);
  if (written !== undefined && isSameValue(meaningOf(written), table)) return { ok: true, text: written };
  const plain = withoutByteOrderMark(text);
  const edited = editToml(plain, table, meaningOf);
  return { ok: true, text: edited === undefined ? formatToml(table) : text.slice(0, text.length - plain.length) + edited };
}

const refused = (message: string, position: object = {}): EditedText => ({ ok: false, problems: [{ path: [], message, ...position }] });

function meaningOf(text: string): unknown {
  const parsed = parseDocument(text);
  return parsed.ok ? toSnakeCase(parsed.document) : undefined;
}
