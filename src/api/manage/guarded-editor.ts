/**
 * Refuses unsafe edits through the API (`decide/unsafe-edits.ts`). It wraps the editor, so no route can forget the
 * check.
 */
import { isTable } from '../../schema/words/key-case.ts';
import { mergePatch, type EditResult, type SlotEditor } from '../../schema/slot/slot-editor.ts';
import { findUnsafeEdits, type Edit, type SafeFlags } from './decide/unsafe-edits.ts';

export function createGuardedEditor(editor: SlotEditor, safeFlags: SafeFlags): SlotEditor {
  const refuse = (edit: Edit): EditResult | undefined => {
    const problems = findUnsafeEdits(edit, safeFlags);
    return problems.length === 0 ? undefined : { kind: 'invalid', problems };
  };

  return {
    ...editor,
    async put(name, document, options) {
      const before = (await editor.read(name))?.document;
      const refused = isTable(document) ? refuse({ name, before, after: document }) : undefined;
      return refused ?? editor.put(name, document, options);
    },
    async patch(name, patch, options) {
      const before = (await editor.read(name))?.document;
      const after = mergePatch(before ?? {}, patch);
      const refused = isTable(after) ? refuse({ name, before, after }) : undefined;
      return refused ?? editor.patch(name, patch, options);
    },
  };
}
