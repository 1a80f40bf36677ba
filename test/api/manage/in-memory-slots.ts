/** Slots as TOML texts in memory, parsed, merged and written as the slot directory does, without a disk. */
import { createHash } from 'node:crypto';
import { patchSlotText, rewriteSlotText } from '../../../src/host/slots/decide/edit-slot.ts';
import { parseDocument } from '../../../src/files/toml/decide/parse-document.ts';
import { parseSlotText } from '../../../src/host/slots/decide/parse-slot-text.ts';
import type { SlotName } from '../../../src/schema/words/names.ts';
import { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import type { EditOptions, EditResult, SlotEditor, StoredSlot } from '../../../src/schema/slot/slot-editor.ts';

export interface InMemorySlots extends SlotEditor {
  readonly texts: Map<SlotName, string>;
  /** Edits fail with this message while it is set. */
  broken: string | undefined;
  /** A repository declares all slots while this is set. */
  managed: string | undefined;
  /** Stored documents then contain the defaults. */
  fillsDefaults: boolean;
}

export function createInMemorySlots(onChange: () => void): InMemorySlots {
  const texts = new Map<SlotName, string>();

  const stored = (name: SlotName, text: string): StoredSlot => {
    const read = parseDocument(text);
    const resourceVersion = createHash('sha256').update(text).digest('hex').slice(0, 12);
    const document = read.ok ? read.document : undefined;
    if (!slots.fillsDefaults) return { name, document, resourceVersion, text };
    return { name, document: SlotDocument.safeParse(document).data, resourceVersion, defaultsFilled: true };
  };

  function refusal(name: SlotName, { ifMatch }: EditOptions): EditResult | undefined {
    const text = texts.get(name);
    if (slots.managed !== undefined) return { kind: 'managed', message: slots.managed };
    if (slots.broken !== undefined) return { kind: 'failed', message: slots.broken };
    if (ifMatch === undefined) return undefined;
    if (text === undefined) return { kind: 'not-found' };
    const { resourceVersion } = stored(name, text);
    return ifMatch === '*' || ifMatch === resourceVersion ? undefined : { kind: 'conflict', resourceVersion };
  }

  function write(name: SlotName, edited: ReturnType<typeof rewriteSlotText>, { dryRun }: EditOptions): EditResult {
    if (!edited.ok) return { kind: 'invalid', problems: edited.problems };
    const read = parseSlotText(name, edited.text, `${name}.toml`);
    if (!read.ok) return { kind: 'invalid', problems: read.problems };
    const created = !texts.has(name);
    if (dryRun !== true) {
      texts.set(name, edited.text);
      onChange();
    }
    return { kind: 'done', slot: stored(name, edited.text), created };
  }

  const slots: InMemorySlots = {
    texts,
    broken: undefined,
    managed: undefined,
    fillsDefaults: false,
    list: async () => [...texts].map(([name, text]) => stored(name, text)),
    async read(name) {
      const text = texts.get(name);
      return text === undefined ? undefined : stored(name, text);
    },
    async put(name, document, options = {}) {
      const text = texts.get(name);
      return refusal(name, options) ?? write(name, rewriteSlotText(text ?? '', document, options.text), options);
    },
    async patch(name, patch, options = {}) {
      const text = texts.get(name);
      if (text === undefined) return { kind: 'not-found' };
      return refusal(name, options) ?? write(name, patchSlotText(text, patch), options);
    },
    async remove(name, options = {}) {
      const text = texts.get(name);
      if (text === undefined) return { kind: 'not-found' };
      const refused = refusal(name, options);
      if (refused !== undefined) return refused;
      if (options.dryRun !== true) {
        texts.delete(name);
        onChange();
      }
      return { kind: 'done', slot: stored(name, text), created: false };
    },
  };
  return slots;
}
